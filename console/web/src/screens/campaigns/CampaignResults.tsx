import { Alert, Badge, Box, Grid, Group, Paper, Progress, SegmentedControl, Stack, Table, Text, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { Button } from '@mantine/core'
import { api, data, whole } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { Captured } from '@/shared/captured'
import { useConfirm } from '@/shared/confirm'
import { CsvButton } from '@/shared/CsvButton'
import { deliveriesOf, notReported } from '@/shared/deliveries'
import { count, instant, percent } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink, ButtonLink } from '@/shared/links'
import { RevenueTable } from '@/shared/RevenueTable'
import { Page } from '@/shared/Page'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, QueryView } from '@/shared/states'
import { useAct } from '../settings/useAct'
import { StatusBadge } from './StatusBadge'
import { campaignQuery, channelNamed, channelOf, useStats, type Campaign, type Stats } from './useCampaigns'

const route = getRouteApi('/shell/campaigns/$id')

/** /campaigns/$id: how far it is, and what people did with it. */
export function CampaignResults() {
  const { id } = route.useParams()
  const { tab = 'numbers' } = route.useSearch()
  const navigate = route.useNavigate()
  const campaign = useQuery(campaignQuery(id))
  const stats = useStats(id, { follow: true })
  return (
    <QueryView query={campaign} what="the campaign">
      {(c) => (
        <Page
          title={c.name}
          aside={
            <Group gap="xs">
              <StatusBadge status={stats.data?.status ?? c.status} />
              {stats.data && <AsOf at={stats.data.as_of} />}
            </Group>
          }
          actions={
            <>
              <ButtonLink to="/campaigns/new" search={{ copy: id }} variant="default" leftSection={<Icon name="copy" size={14} />}>
                Duplicate
              </ButtonLink>
              <ButtonLink to="/campaigns/$id/edit" params={{ id }} variant="default" leftSection={<Icon name="edit" size={14} />}>
                Message and audience
              </ButtonLink>
            </>
          }
        >
          <QueryView query={stats} what="the numbers">
            {(n) =>
              n.runs.length === 0 ? (
                <Empty
                  icon="send"
                  title="It was not sent yet"
                  action={
                    <ButtonLink to="/campaigns/$id/edit" params={{ id }} search={{ step: 'send' }}>
                      {c.scheduled_at ? 'Look at the schedule' : 'Finish and send it'}
                    </ButtonLink>
                  }
                >
                  {c.scheduled_at ? `It is sent on ${instant(c.scheduled_at)}.` : 'Its numbers appear here once it is being sent.'}
                </Empty>
              ) : (
                <>
                  <Box mb="md">
                    <Captured channel={channelOf(c).medium}>As the server is set up, messages that count as sent here are kept by it and reach nobody.</Captured>
                  </Box>
                  <SegmentedControl mb="md" aria-label="What is shown" value={tab} onChange={(v) => void navigate({ search: { tab: v as typeof tab }, replace: true })} data={[{ value: 'numbers', label: 'Numbers' }, { value: 'recipients', label: 'Recipients' }]} />
                  {tab === 'recipients' ? <Recipients campaign={c} /> : <Numbers campaign={c} n={n} />}
                </>
              )
            }
          </QueryView>
        </Page>
      )}
    </QueryView>
  )
}

function Tile({ label, value, of, note }: { label: string; value: number | null; of?: number; note?: string }) {
  return (
    <Paper withBorder p="sm" h="100%">
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Group gap={6} align="baseline">
        <Text fz={value === null ? 'md' : 24} fw={value === null ? 400 : 700} lh={value === null ? 2.2 : 1.3} c={value === null ? 'dimmed' : undefined} className="numbers" data-testid={`tile-${label}`}>
          {value === null ? notReported : count(value)}
        </Text>
        {value !== null && of !== undefined && of > 0 && (
          <Text size="sm" c="dimmed">
            {percent(value / of)}
          </Text>
        )}
      </Group>
      {note && (
        <Text size="xs" c="dimmed">
          {note}
        </Text>
      )}
    </Paper>
  )
}

const times = (n: number, what: string) => `${count(n)} ${what}${n === 1 ? '' : 's'}`

/** Cancels what is left of a send that waits. */
function CancelRest({ campaign }: { campaign: Campaign }) {
  const may = useMay()
  const confirm = useConfirm()
  const [act, busy] = useAct('campaign', 'campaigns')
  if (!may('campaigns:write')) return null
  const cancel = async () => {
    if (await confirm({ title: `Cancel the rest of ${campaign.name}?`, yes: 'Cancel the rest', danger: true, body: 'People who have not got it yet do not get it, until it is sent again.' }))
      await act('It was not cancelled', () => data(api.DELETE('/console/api/v1/campaigns/{id}/schedule', { params: { path: { id: campaign._id } } })), 'The rest is cancelled.')
  }
  return (
    <Group mt="sm">
      <Button size="xs" variant="default" onClick={() => void cancel()} loading={busy}>
        Cancel the rest
      </Button>
    </Group>
  )
}

function Numbers({ campaign, n }: { campaign: Campaign; n: Stats }) {
  const skipped = Object.entries(n.skipped).sort((a, b) => b[1] - a[1])
  const passed = skipped.reduce((sum, [, k]) => sum + k, 0)
  const done = n.total_members ? (n.total_members - n.remaining) / n.total_members : 1
  const moving = n.status === 'sending' || n.status === 'testing' || n.status === 'waiting'
  const delivered = deliveriesOf(n)
  type Tiles = [string, number | null, number?, string?][]
  const inInbox: Tiles = [
    ['Dismissed', n.dismissed, n.sent],
    ['Expired', n.expired, n.sent, 'before they were seen'],
  ]
  // No provider reports on in-app messages, and they do not bounce.
  const tiles: Tiles =
    campaign.channels.length === 0 && channelOf(campaign).medium === 'in_app'
      ? [['Sent', n.sent], ['Seen', n.unique_opens, n.sent], ['Clicked', n.unique_clicks, n.sent], ...inInbox, ['Failed', n.failed]]
      : [
          ['Sent', n.sent],
          ['Delivered', delivered, n.sent, delivered === null ? 'by the relay or provider' : 'as the relay or provider reports it'],
          ['Opened', n.unique_opens, n.sent, n.opens < n.unique_opens ? `${times(n.opens, 'open')} seen; a click counts as opened` : `${times(n.opens, 'open')} in all`],
          ['Clicked', n.unique_clicks, n.sent, `${times(n.clicks, 'click')} in all`],
          ['Unsubscribed', n.unsubscribes, n.sent],
          ['Bounced', n.bounces, n.sent + n.failed],
          ['Complained', n.complaints, n.sent],
          ['Failed', n.failed],
          ...(campaign.channels.some((c) => c.channel === 'in_app') ? inInbox : []),
        ]
  const links = [...n.links].sort((a, b) => b.clicks - a.clicks)
  const most = Math.max(1, ...links.map((l) => l.clicks))
  return (
    <Stack gap="md">
      {moving && (
        <Paper withBorder p="md" role="status">
          <Group justify="space-between" mb={6}>
            <Text size="sm" fw={600}>
              {n.status === 'testing' ? 'The A/B test is running' : n.waiting_until ? `It waits until ${instant(n.waiting_until)}` : 'It is being sent'}
            </Text>
            <Text size="sm" className="numbers">
              {count(n.total_members - n.remaining)} of {count(n.total_members)}
            </Text>
          </Group>
          <Progress value={done * 100} animated={n.status === 'sending'} aria-label={`${percent(done)} done`} />
          {n.status === 'waiting' && <CancelRest campaign={campaign} />}
        </Paper>
      )}
      {n.errors.length > 0 && (
        <Alert color="red" variant="light" icon={<Icon name="alert" />} title={n.status === 'stopped' ? 'It was stopped' : 'There were errors'}>
          {n.errors.map((e, i) => (
            <Text key={i} size="sm">
              {e}
            </Text>
          ))}
        </Alert>
      )}
      <Grid gap="sm">
        {tiles.map(([label, value, of, note]) => (
          <Grid.Col key={label} span={{ base: 6, sm: 3 }}>
            <Tile label={label} value={value} of={of} note={note} />
          </Grid.Col>
        ))}
      </Grid>
      {n.revenue.length > 0 && (
        <Paper withBorder p="md" component="section" aria-label="Revenue">
          <Title order={2} size="h5" mb="xs">
            Revenue
          </Title>
          <RevenueTable label="Revenue of the campaign" rows={n.revenue} />
        </Paper>
      )}
      {n.ab_test && <ABTest ab={n.ab_test} />}
      {n.channels.length > 0 && <ByChannel list={n.channels} />}
      <Box className="halves">
        <Paper withBorder p="md" component="section" aria-label="Clicks by link">
          <Group justify="space-between" mb="xs">
            <Title order={2} size="h5">
              Clicks by link
            </Title>
            <CsvButton name={`${campaign.name} links`} what="the clicks by link" header={['url', 'clicks']} rows={() => links.map((l) => [l.url, l.clicks])} />
          </Group>
          {links.length === 0 ? (
            <Text size="sm" c="dimmed">
              The message has no link that is counted.
            </Text>
          ) : (
            <Stack gap={8}>
              {links.map((l) => (
                <div key={l.url} data-testid="link">
                  <Group justify="space-between" gap="xs" wrap="nowrap">
                    <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                      {l.url}
                    </Text>
                    <Text size="sm" className="numbers">
                      {count(l.clicks)}
                    </Text>
                  </Group>
                  <Progress size={4} value={(l.clicks / most) * 100} aria-label={times(l.clicks, 'click')} />
                </div>
              ))}
            </Stack>
          )}
        </Paper>
        <Paper withBorder p="md" component="section" aria-label="The audience">
          <Title order={2} size="h5" mb="xs">
            Audience breakdown
          </Title>
          <Table verticalSpacing={4} className="numbers">
            <Table.Tbody>
              <Line label="People in the audience of the last send" value={n.total_members} />
              {skipped.map(([why, k]) => (
                <Line key={why} label={`not sent: ${why}`} value={k} dim />
              ))}
              {n.remaining > 0 && <Line label="still to be sent to" value={n.remaining} dim />}
              {n.waiting > 0 && <Line label="of them, for the end of quiet hours or the time of their clocks" value={n.waiting} dim />}
              <Line label="Sent, in total" value={n.sent} />
              {passed > 0 && <Line label="Not sent, in total" value={passed} />}
            </Table.Tbody>
          </Table>
        </Paper>
      </Box>
      {n.runs.length > 0 && (
        <Paper withBorder p="md" component="section" aria-label="Sends">
          <Group justify="space-between" mb="xs">
            <Title order={2} size="h5">
              Sends
            </Title>
            <CsvButton name={`${campaign.name} sends`} what="the sends" header={['run', 'status', 'started_at', 'finished_at', 'total_members', 'sent', 'failed', 'delivered', 'unique_opens', 'unique_clicks']} rows={() => n.runs.map((r) => [r.run, r.status, r.started_at, r.finished_at, r.total_members, r.emails_sent, r.failed, r.delivered, r.unique_opens, r.unique_clicks])} />
          </Group>
          <ScrollTable label="Table of sends" minWidth={560}>
            <Table verticalSpacing={4} className="numbers">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Started</Table.Th>
                  <Table.Th>Status</Table.Th>
                  {['Audience', 'Sent', 'Failed', 'Opened', 'Clicked'].map((h) => (
                    <Table.Th key={h} ta="right">
                      {h}
                    </Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {[...n.runs].reverse().map((r) => (
                  <Table.Tr key={r.run}>
                    <Table.Td>{r.started_at ? instant(r.started_at) : '–'}</Table.Td>
                    <Table.Td>{r.status}</Table.Td>
                    {[r.total_members, r.emails_sent, r.failed, r.unique_opens, r.unique_clicks].map((v, i) => (
                      <Table.Td key={i} ta="right">
                        {count(v)}
                      </Table.Td>
                    ))}
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollTable>
        </Paper>
      )}
    </Stack>
  )
}

function Line({ label, value, dim }: { label: string; value: number; dim?: boolean }) {
  return (
    <Table.Tr>
      <Table.Td pl={dim ? 'lg' : undefined} c={dim ? 'dimmed' : undefined}>
        {label}
      </Table.Td>
      <Table.Td ta="right" c={dim ? 'dimmed' : undefined}>
        {count(value)}
      </Table.Td>
    </Table.Tr>
  )
}

/** What became of a campaign of several channels on each of them. */
function ByChannel({ list }: { list: Stats['channels'] }) {
  return (
    <Paper withBorder p="md" component="section" aria-label="By channel">
      <Title order={2} size="h5" mb="xs">
        By channel
      </Title>
      <ScrollTable label="Table of channels" minWidth={560}>
        <Table verticalSpacing={4} className="numbers">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Channel</Table.Th>
              {['Sent', 'Delivered', 'Opened', 'Clicked', 'Failed'].map((h) => (
                <Table.Th key={h} ta="right">
                  {h}
                </Table.Th>
              ))}
              <Table.Th>Not reached on it</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {list.map((c) => (
              <Table.Tr key={c.channel} data-testid={`channel-${c.channel}`}>
                <Table.Td>{channelNamed(c.channel).name}</Table.Td>
                {[c.emails_sent, c.delivered, c.unique_opens, c.unique_clicks, c.failed].map((v, i) => (
                  <Table.Td key={i} ta="right">
                    {count(v)}
                  </Table.Td>
                ))}
                <Table.Td c="dimmed">{Object.entries(c.skipped).map(([why, k]) => `${why}: ${count(k)}`).join('; ') || '–'}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollTable>
    </Paper>
  )
}

function ABTest({ ab }: { ab: NonNullable<Stats['ab_test']> }) {
  const share = (v: (typeof ab.variants)[number]) => (v.emails_sent ? (ab.metric === 'opens' ? v.unique_opens : v.unique_clicks) / v.emails_sent : 0)
  return (
    <Paper withBorder p="md" component="section" aria-label="A/B test">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h5">
          A/B test
        </Title>
        <Text size="sm" c="dimmed">
          {ab.winner !== null ? 'The best went to the rest.' : ab.ends_at ? `The best by ${ab.metric} is chosen on ${instant(ab.ends_at)}.` : `The best by ${ab.metric} is chosen after the test.`}
        </Text>
      </Group>
      <Table verticalSpacing={4} className="numbers">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Variant</Table.Th>
            <Table.Th ta="right">Sent</Table.Th>
            <Table.Th ta="right">Opened</Table.Th>
            <Table.Th ta="right">Clicked</Table.Th>
            <Table.Th ta="right">By {ab.metric}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {ab.variants.map((v) => (
            <Table.Tr key={v.variant}>
              <Table.Td>
                {String.fromCharCode(65 + v.variant)}{' '}
                {ab.winner === v.variant && (
                  <Badge size="xs" variant="light" color="teal" c="var(--mantine-color-text)">
                    chosen
                  </Badge>
                )}
              </Table.Td>
              <Table.Td ta="right">{count(v.emails_sent)}</Table.Td>
              <Table.Td ta="right">{count(v.unique_opens)}</Table.Td>
              <Table.Td ta="right">{count(v.unique_clicks)}</Table.Td>
              <Table.Td ta="right">{percent(share(v))}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  )
}

function Recipients({ campaign }: { campaign: Campaign }) {
  const pages = useInfiniteQuery({
    queryKey: ['campaign', campaign._id, 'recipients'],
    queryFn: ({ pageParam, signal }) => whole(api.GET('/console/api/v1/campaigns/{id}/recipients/activity', { params: { path: { id: campaign._id }, query: { limit: 50, cursor: pageParam } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  })
  const rows = pages.data?.pages.flatMap((p) => p.data) ?? []
  if (!pages.data) return <QueryView query={pages as never} what="the recipients">{() => null}</QueryView>
  const did = (r: (typeof rows)[number]) => (['unsubscribed', 'complained', 'bounced', 'failed', 'clicked', 'opened', 'delivered', 'sent'] as const).filter((k) => r[k])
  return (
    <>
      <Group justify="flex-end">
        <CsvButton name={`${campaign.name} recipients`} what="the recipients shown" header={['contact_id', 'email', 'did', 'opens', 'opened_at', 'clicks', 'clicked_at']} rows={() => rows.map((r) => [r.contact_id, r.email, did(r).join(' '), r.opens, r.opened_at, r.clicks, r.clicked_at])} />
      </Group>
      <Paper withBorder>
        <ScrollTable label="Table of recipients" minWidth={520}>
          <Table verticalSpacing={6}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Person</Table.Th>
                <Table.Th>What happened</Table.Th>
                <Table.Th>Opened first</Table.Th>
                <Table.Th>Links</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((r) => (
                <Table.Tr key={r.contact_id}>
                  <Table.Td>
                    <AnchorLink to="/people/$id" params={{ id: r.contact_id }} size="sm">
                      {r.email ?? r.contact_id}
                    </AnchorLink>
                  </Table.Td>
                  <Table.Td>{did(r)[0] ?? 'to be sent'}</Table.Td>
                  <Table.Td>{r.opened_at ? instant(r.opened_at) : '–'}</Table.Td>
                  <Table.Td style={{ overflowWrap: 'anywhere' }}>{r.links.map((l) => `${l.url} (${count(l.clicks)})`).join(', ') || '–'}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </ScrollTable>
      </Paper>
      {pages.hasNextPage && (
        <Button mt="sm" variant="default" onClick={() => void pages.fetchNextPage()} loading={pages.isFetchingNextPage}>
          Show more
        </Button>
      )}
    </>
  )
}
