import { Grid, Group, NativeSelect, Paper, Progress, SimpleGrid, Stack, Table, Tabs, Text, TextInput, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo, type ReactNode } from 'react'
import { api, data, whole, type Schemas } from '@/shared/api/client'
import { allPages } from '@/shared/api/pages'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import type { Cell } from '@/shared/csv'
import { CsvButton } from '@/shared/CsvButton'
import { deliveriesOf, notReported } from '@/shared/deliveries'
import { count, percent } from '@/shared/format'
import { AnchorLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { Plot } from '@/shared/Plot'
import { RevenueTable } from '@/shared/RevenueTable'
import { ScrollTable } from '@/shared/ScrollTable'
import { atEnds, overSpans, type Granularity } from '@/shared/spans'
import { Empty, NoPermission, QueryView } from '@/shared/states'

const route = getRouteApi('/shell/analytics')
type Counts = Schemas['MessageCounts']
type Range = { from?: string; to?: string; granularity: Granularity }
/** The range that an answer is of. */
type Stretch = { from: string; to: string }

const channelNames = { email: 'E-mail', sms: 'SMS', whatsapp: 'WhatsApp', im: 'Messenger', push: 'Push', in_app: 'In-app' } as const
const day = 86_400_000

function useRange(): Range {
  const { days = '30', from, to, by } = route.useSearch()
  // Whole hours, so that looking again asks the same question.
  const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000
  return useMemo(() => {
    const valid = (v: string | undefined) => (v && /^\d{4}-\d{2}-\d{2}$/.test(v) ? v : undefined)
    const first = valid(from) ?? new Date(hour - Number(days) * day).toISOString().slice(0, 10)
    const end = valid(to)
    return { from: first, ...(end && { to: new Date(Date.parse(end) + day).toISOString().slice(0, 10) }), granularity: by ?? (days === '7' ? 'hour' : days === '365' ? 'week' : 'day') }
  }, [days, from, to, by, hour])
}

/** /analytics: what happened in a range of time; every chart can be saved as CSV. */
export function Analytics() {
  const search = route.useSearch()
  const { tab = 'overview' } = search
  const navigate = route.useNavigate()
  const may = useMay()
  const range = useRange()
  if (!may('analytics:read')) return <NoPermission permission="analytics:read" />
  const set = (part: Partial<typeof search>) => void navigate({ search: (s) => ({ ...s, ...part }), replace: true })
  return (
    <Page title="Analytics">
      <Group gap="sm" mb="md" align="flex-end">
        <NativeSelect label="Range" value={search.from || search.to ? '' : (search.days ?? '30')} onChange={(e) => set({ days: (e.currentTarget.value || '30') as '30', from: undefined, to: undefined })} data={[{ value: '7', label: 'The last 7 days' }, { value: '30', label: 'The last 30 days' }, { value: '90', label: 'The last 90 days' }, { value: '365', label: 'The last year' }, ...(search.from || search.to ? [{ value: '', label: 'From day to day' }] : [])]} />
        <TextInput type="date" label="From" value={range.from ?? ''} onChange={(e) => set({ from: e.currentTarget.value || undefined })} />
        <TextInput type="date" label="To" value={search.to ?? ''} onChange={(e) => set({ to: e.currentTarget.value || undefined })} />
        <NativeSelect label="By" value={range.granularity} onChange={(e) => set({ by: e.currentTarget.value as 'day' })} data={['hour', 'day', 'week', 'month']} />
      </Group>
      <Tabs value={tab} onChange={(v) => set({ tab: v as typeof tab })} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="overview">Overview</Tabs.Tab>
          <Tabs.Tab value="channels">Messages</Tabs.Tab>
          <Tabs.Tab value="domains">E-mail by domain</Tabs.Tab>
          <Tabs.Tab value="flows">Flows</Tabs.Tab>
          <Tabs.Tab value="events">Events</Tabs.Tab>
          <Tabs.Tab value="revenue">Revenue</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="overview">
          <Overview range={range} />
        </Tabs.Panel>
        <Tabs.Panel value="channels">
          <Messages range={range} channel={search.channel ?? 'email'} onChannel={(channel) => set({ channel })} />
        </Tabs.Panel>
        <Tabs.Panel value="domains">
          <Domains range={range} />
        </Tabs.Panel>
        <Tabs.Panel value="flows">
          <Flows range={range} />
        </Tabs.Panel>
        <Tabs.Panel value="events">
          <Events range={range} />
        </Tabs.Panel>
        <Tabs.Panel value="revenue">
          <Revenue range={range} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  )
}

/** What orders brought: in all, by day, and by campaign and step of a flow. */
function Revenue({ range }: { range: Range }) {
  const may = useMay()
  const before = range.to && new Date(Date.parse(range.to) - day).toISOString().slice(0, 10)
  const answer = useQuery({ queryKey: ['revenue', range.from, before], queryFn: () => data(api.GET('/console/api/v1/revenue', { params: { query: { from: range.from, ...(before && { to: before }) } } })) })
  const campaigns = useQuery({ queryKey: ['campaign names'], queryFn: async () => new Map((await allPages((cursor) => whole(api.GET('/console/api/v1/campaigns', { params: { query: { limit: 100, cursor } } })))).map((c) => [c._id, c.name])), enabled: may('campaigns:read') })
  const flows = useQuery({ queryKey: ['flow names'], queryFn: async () => new Map((await allPages((cursor) => whole(api.GET('/console/api/v1/flows', { params: { query: { limit: 100, cursor } } })))).map((f) => [f._id, f.name])), enabled: may('flows:read') })
  return (
    <QueryView query={answer} what="the revenue">
      {(a) =>
        a.totals.length === 0 ? (
          <Empty icon="chart" title="There is no order in these days">
            Orders come by the event order_placed with order_id, total and currency; refunds by order_refunded.
          </Empty>
        ) : (
          <Stack gap="md">
            <Card title="Revenue in all">
              <RevenueTable label="Revenue in all" rows={a.totals} />
            </Card>
            <Card title="Revenue by campaign and flow">
              {a.sources.length === 0 ? (
                <Text size="sm" c="dimmed">
                  No order followed a click or an open of a message.
                </Text>
              ) : (
                <RevenueTable label="Revenue by campaign and flow" first="Message" rows={a.sources.map((s) => ({ ...s, name: s.campaign_id ? (campaigns.data?.get(s.campaign_id) ?? s.campaign_id) : `${flows.data?.get(s.flow_id ?? '') ?? s.flow_id}: ${s.step_id}` }))} />
              )}
            </Card>
            <Card title="Revenue by day" csv={{ header: ['date', 'currency', 'orders', 'total', 'refunded', 'revenue', 'attributed_orders', 'attributed_revenue'], rows: () => a.days.map((d) => [d.date, d.currency, d.orders, d.total, d.refunded, d.revenue, d.attributed_orders, d.attributed_revenue]) }}>
              <RevenueTable label="Revenue by day" first="Day" rows={[...a.days].sort((x, y) => y.date.localeCompare(x.date)).map((d) => ({ ...d, name: d.date }))} />
            </Card>
          </Stack>
        )
      }
    </QueryView>
  )
}

function Card({ title, at, csv, children }: { title: string; at?: string; csv?: { header: string[]; rows: () => Cell[][] }; children: ReactNode }) {
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Group justify="space-between" mb="xs" wrap="nowrap">
        <Title order={2} size="h5">
          {title}
        </Title>
        <Group gap="xs" wrap="nowrap">
          {at && <AsOf at={at} />}
          {csv && <CsvButton name={title} what={title} {...csv} />}
        </Group>
      </Group>
      {children}
    </Paper>
  )
}

/** A chart of numbers of spans, drawn over them. */
function Chart<P extends { start: string }>({ title, range, by, points, series }: { title: string; range: Stretch; by: Granularity; points: P[]; series: { label: string; of: (p: P) => number }[] }) {
  const shown = useMemo(() => overSpans(range, by, series.map((s) => ({ label: s.label, points: points.map((p) => ({ start: p.start, value: s.of(p) })) }))), [range, by, points, series])
  return (
    <Card title={title} at={range.to} csv={{ header: ['start', ...series.map((s) => s.label)], rows: () => points.map((p) => [p.start, ...series.map((s) => s.of(p))]) }}>
      <Plot {...shown} spans label={`${title} by ${by}: ${series.map((s) => `${count(points.reduce((n, p) => n + s.of(p), 0))} ${s.label.toLowerCase()}`).join(', ')}`} height={220} />
    </Card>
  )
}

/** How many people there were, and how many were new. */
function Growth({ range, by, points }: { range: Stretch; by: Granularity; points: { start: string; new: number; total: number }[] }) {
  const plots = useMemo(() => {
    const first = points[0]
    const total = atEnds(points.map((p) => ({ start: p.start, value: p.total })), by, range.to, first ? first.total - first.new : 0)
    return { total: { times: total.times, series: [{ label: 'People', values: total.values }] }, fresh: overSpans(range, by, [{ label: 'New', points: points.map((p) => ({ start: p.start, value: p.new })) }]) }
  }, [range, by, points])
  return (
    <Card title="People" at={range.to} csv={{ header: ['start', 'new', 'total_at_end'], rows: () => points.map((p) => [p.start, p.new, p.total]) }}>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <div>
          <Text size="xs" c="dimmed">
            People at the end of each {by}
          </Text>
          <Plot {...plots.total} label={`People by ${by}: ${count(points.at(-1)?.total ?? 0)} at the end`} height={200} />
        </div>
        <div>
          <Text size="xs" c="dimmed">
            New in each {by}
          </Text>
          <Plot {...plots.fresh} spans label={`New people by ${by}: ${count(points.reduce((n, p) => n + p.new, 0))}`} height={200} />
        </div>
      </SimpleGrid>
    </Card>
  )
}

function Tiles({ of }: { of: [string, number | null, string?][] }) {
  return (
    <Grid gap="sm">
      {of.map(([label, n, note]) => (
        <Grid.Col key={label} span={{ base: 6, sm: 3 }}>
          <Paper withBorder p="sm" h="100%">
            <Text size="xs" c="dimmed">
              {label}
            </Text>
            <Text fz={24} fw={700} lh={1.3} className="numbers" data-testid={`tile-${label}`}>
              {n === null ? '–' : count(n)}
            </Text>
            {note && (
              <Text size="xs" c="dimmed">
                {note}
              </Text>
            )}
          </Paper>
        </Grid.Col>
      ))}
    </Grid>
  )
}

function Overview({ range }: { range: Range }) {
  const q = useQuery({ queryKey: ['analytics', 'overview', range], queryFn: ({ signal }) => data(api.GET('/console/api/v1/analytics/overview', { params: { query: range }, signal })) })
  const contacts = useQuery({ queryKey: ['analytics', 'contacts', range], queryFn: ({ signal }) => data(api.GET('/console/api/v1/analytics/contacts', { params: { query: range }, signal })) })
  return (
    <QueryView query={q} what="the overview">
      {(o) => {
        const rows = Object.entries(o.channels) as [keyof typeof channelNames, Counts][]
        return (
          <Stack gap="md">
            <Tiles of={[['People', o.contacts.total, `${count(o.contacts.new)} new`], ['Subscribed to e-mail', o.contacts.subscribed, o.contacts.total && o.contacts.subscribed !== null ? percent(o.contacts.subscribed / o.contacts.total) : undefined], ['Events', o.events], ['E-mails sent', o.messages.sent, `${count(o.messages.unique_opens)} opened`]]} />
            {contacts.data && <Growth range={contacts.data.range} by={range.granularity} points={contacts.data.series} />}
            <CountsTable title="Messages by channel" at={o.range.to} first="Channel" rows={rows.map(([c, n]) => [channelNames[c], n])} />
          </Stack>
        )
      }}
    </QueryView>
  )
}

const columns: [string, keyof Counts, keyof Counts | null][] = [['Sent', 'sent', null], ['Delivered', 'delivered', 'delivery_rate'], ['Opened', 'unique_opens', 'open_rate'], ['Clicked', 'unique_clicks', 'click_rate'], ['Bounced', 'bounces', 'bounce_rate'], ['Complained', 'complaints', 'complaint_rate'], ['Unsubscribed', 'unsubscribes', 'unsubscribe_rate']]

function CountsTable({ title, at, first, rows }: { title: string; at: string; first: string; rows: [string, Counts][] }) {
  return (
    <Card title={title} at={at} csv={{ header: [first.toLowerCase(), ...columns.map((c) => c[1]), 'failed', 'opens', 'clicks'], rows: () => rows.map(([name, n]) => [name, ...columns.map((c) => n[c[1]] as number), n.failed, n.opens, n.clicks]) }}>
      <ScrollTable label={`Table of ${title}`} minWidth={640}>
        <Table verticalSpacing={6} className="numbers">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{first}</Table.Th>
              {columns.map(([h]) => (
                <Table.Th key={h} ta="right">
                  {h}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map(([name, n]) => (
              <Table.Tr key={name}>
                <Table.Td>{name}</Table.Td>
                {columns.map(([h, k, rate]) => {
                  const bad = (k === 'bounces' && n.bounce_rate_healthy === false) || (k === 'complaints' && n.complaint_rate_healthy === false)
                  if (k === 'delivered' && deliveriesOf(n) === null)
                    return (
                      <Table.Td key={h} ta="right" c="dimmed">
                        {notReported}
                      </Table.Td>
                    )
                  return (
                    <Table.Td key={h} ta="right" c={bad ? 'var(--mantine-color-error)' : undefined} title={bad ? 'This is too high: mailbox providers may refuse your e-mail.' : undefined}>
                      {count(n[k] as number)}
                      {rate && n.sent > 0 && (
                        <Text size="xs" c={bad ? undefined : 'dimmed'}>
                          {percent(n[rate] as number)}
                          {bad && ', too high'}
                        </Text>
                      )}
                    </Table.Td>
                  )
                })}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollTable>
    </Card>
  )
}

type Point = Counts & { start: string }
const messageSeries = [{ label: 'Sent', of: (p: Point) => p.sent }, { label: 'Opened', of: (p: Point) => p.unique_opens }, { label: 'Clicked', of: (p: Point) => p.unique_clicks }]

function Messages({ range, channel, onChannel }: { range: Range; channel: keyof typeof channelNames; onChannel: (c: keyof typeof channelNames) => void }) {
  const q = useQuery({ queryKey: ['analytics', 'performance', range, channel], queryFn: ({ signal }) => data(api.GET('/console/api/v1/analytics/performance', { params: { query: { ...range, channel } }, signal })) })
  return (
    <Stack gap="md">
      <NativeSelect label="Channel" value={channel} onChange={(e) => onChannel(e.currentTarget.value as typeof channel)} data={Object.entries(channelNames).map(([value, label]) => ({ value, label }))} maw={240} />
      <QueryView query={q} what="the messages">
        {(p) => (
          <Stack gap="md">
            <Chart title={`${channelNames[channel]} over time`} range={p.range} by={range.granularity} points={p.series} series={messageSeries} />
            <CountsTable title={`${channelNames[channel]} in the range`} at={p.range.to} first="Channel" rows={[[channelNames[channel], p.totals]]} />
          </Stack>
        )}
      </QueryView>
    </Stack>
  )
}

function Domains({ range: { from, to } }: { range: Range }) {
  const q = useQuery({ queryKey: ['analytics', 'domains', from, to], queryFn: ({ signal }) => data(api.GET('/console/api/v1/analytics/domains', { params: { query: { from, to } }, signal })) })
  return (
    <QueryView query={q} what="the domains">
      {(d) =>
        d.domains.length === 0 ? (
          <Empty icon="mail" title="No e-mail was sent in this range">
            Choose a longer one. Each mailbox provider judges senders by itself, so rates are listed by the recipient's domain.
          </Empty>
        ) : (
          <CountsTable title="E-mail by domain" at={d.range.to} first="Domain" rows={[...d.domains.map((x): [string, Counts] => [x.domain, x]), ...(d.other.sent > 0 ? [['All others', d.other] as [string, Counts]] : [])]} />
        )
      }
    </QueryView>
  )
}

const moves = [{ label: 'Entered', of: (p: Schemas['FlowMoves']) => p.entered }, { label: 'Completed', of: (p: Schemas['FlowMoves']) => p.completed }, { label: 'Left before', of: (p: Schemas['FlowMoves']) => p.exited }]

function Flows({ range }: { range: Range }) {
  const q = useQuery({ queryKey: ['analytics', 'flows', range], queryFn: ({ signal }) => data(api.GET('/console/api/v1/analytics/flows/overview', { params: { query: range }, signal })) })
  return (
    <QueryView query={q} what="the flows">
      {(f) => (
        <Stack gap="md">
          <Tiles of={[['Live flows', f.live], ['In a flow now', f.counts.in_progress], ['Entered', f.in_range.entered, 'in the range'], ['Completed', f.in_range.completed, 'in the range']]} />
          <Chart title="People in flows" range={f.range} by={range.granularity} points={f.series} series={moves} />
          <Card title="By flow" at={f.range.to} csv={{ header: ['flow_id', 'name', 'status', 'in_progress', 'entered', 'completed', 'exited'], rows: () => f.flows.map((x) => [x.flow_id, x.name, x.status, x.counts.in_progress, x.in_range.entered, x.in_range.completed, x.in_range.exited]) }}>
            {f.flows.length === 0 ? (
              <Text size="sm" c="dimmed">
                There is no flow yet.
              </Text>
            ) : (
              <ScrollTable label="Table of flows" minWidth={480}>
                <Table verticalSpacing={6} className="numbers">
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Flow</Table.Th>
                      {['In it now', 'Entered', 'Completed', 'Left before'].map((h) => (
                        <Table.Th key={h} ta="right">
                          {h}
                        </Table.Th>
                      ))}
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {f.flows.map((x) => (
                      <Table.Tr key={x.flow_id}>
                        <Table.Td>
                          <AnchorLink to="/flows/$id" params={{ id: x.flow_id }} size="sm">
                            {x.name}
                          </AnchorLink>
                        </Table.Td>
                        {[x.counts.in_progress, x.in_range.entered, x.in_range.completed, x.in_range.exited].map((n, i) => (
                          <Table.Td key={i} ta="right">
                            {count(n)}
                          </Table.Td>
                        ))}
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </ScrollTable>
            )}
          </Card>
        </Stack>
      )}
    </QueryView>
  )
}

const mostLines = 5 // event types that the chart shows

function Events({ range }: { range: Range }) {
  const q = useQuery({ queryKey: ['analytics', 'events', range], queryFn: ({ signal }) => data(api.GET('/console/api/v1/analytics/events', { params: { query: range }, signal })) })
  const plot = useMemo(() => {
    const top = [...(q.data?.events ?? [])].sort((a, b) => b.events - a.events).slice(0, mostLines)
    const starts = [...new Set(top.flatMap((t) => t.series.map((p) => p.start)))].sort()
    const by = top.map((t) => new Map(t.series.map((p) => [p.start, p.events])))
    return { points: starts.map((start, i) => ({ start, i })), series: top.map((t, k) => ({ label: t.event_type, of: (p: { start: string }) => by[k]!.get(p.start) ?? 0 })) }
  }, [q.data])
  return (
    <QueryView query={q} what="the events">
      {(e) => {
        if (e.events.length === 0) return <Empty icon="activity" title="No event came in this range">Choose a longer one, or send events.</Empty>
        const sorted = [...e.events].sort((a, b) => b.events - a.events)
        const most = sorted[0]!.events
        return (
          <Stack gap="md">
            <Chart title={e.events.length > mostLines ? `The ${mostLines} most frequent events` : 'Events over time'} range={e.range} by={range.granularity} points={plot.points} series={plot.series} />
            <Card title="Events by type" at={e.range.to} csv={{ header: ['event_type', 'events', 'people'], rows: () => sorted.map((x) => [x.event_type, x.events, x.contacts]) }}>
              <Table verticalSpacing={6} className="numbers">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Event</Table.Th>
                    <Table.Th ta="right">Events</Table.Th>
                    <Table.Th ta="right">People</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {sorted.map((x) => (
                    <Table.Tr key={x.event_type}>
                      <Table.Td>
                        {x.event_type}
                        <Progress size={3} value={(x.events / most) * 100} aria-hidden />
                      </Table.Td>
                      <Table.Td ta="right">{count(x.events)}</Table.Td>
                      <Table.Td ta="right">{count(x.contacts)}</Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Card>
          </Stack>
        )
      }}
    </QueryView>
  )
}
