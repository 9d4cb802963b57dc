import { Alert, Badge, Button, Code, Collapse, Group, Menu, NativeSelect, Paper, Stack, Table, Tabs, Text, UnstyledButton } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, data, whole, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { useConfirm } from '@/shared/confirm'
import { CopyButton } from '@/shared/CopyButton'
import { ago, count, instant, timeOfDay } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { parseJson, writeJson } from '@/shared/json'
import { AnchorLink } from '@/shared/links'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, Failed, Loading, QueryView } from '@/shared/states'
import { SecretOnce } from './SecretOnce'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'
import { HookForm, HookStatus, type Hook } from './Webhooks'

const route = getRouteApi('/shell/settings/webhooks/$id')

/** While deliveries wait, their state is read again: there is no stream of them. */
const again = 2000 // milliseconds

/** /settings/webhooks/$id: the deliveries and dead letters of an endpoint. */
export function Webhook() {
  const { id } = route.useParams()
  const { tab = 'deliveries' } = route.useSearch()
  const navigate = useNavigate()
  const may = useMay()
  const confirm = useConfirm()
  const hook = useQuery({ queryKey: ['webhook', id], queryFn: () => data(api.GET('/console/api/v1/webhooks/{id}', { params: { path: { id } } })), refetchInterval: (q) => (q.state.data && q.state.data.waiting > 0 && q.state.data.status === 'active' ? again : false) })
  const [act, busy] = useAct('webhook', 'webhooks', 'deliveries', 'dead-letters')
  const [editing, setEditing] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const path = { params: { path: { id } } }
  const w = hook.data
  const rotate = async () => {
    if (!(await confirm({ title: 'Make a new secret?', body: 'For a day deliveries are signed by both, the old one and the new one. Give the new one to your program within that time.', yes: 'Make a new secret' }))) return
    const made = await act('There is no new secret', () => data(api.POST('/console/api/v1/webhooks/{id}/rotate', path)))
    if (made) setSecret(made.secret)
  }
  const remove = async () => {
    if (!(await confirm({ title: `Remove ${w?.description || w?.url}?`, body: 'Waiting deliveries are not sent any more, and its log and dead letters are deleted.', yes: 'Remove', danger: true }))) return
    if (await act('The webhook was not removed', () => data(api.DELETE('/console/api/v1/webhooks/{id}', path)), 'The webhook is removed.')) void navigate({ to: '/settings/webhooks' })
  }
  const setStatus = (status: 'active' | 'disabled') => act('Its status was not changed', () => data(api.PATCH('/console/api/v1/webhooks/{id}', { ...path, body: { status } })))
  return (
    <SettingsPage
      section="/settings/webhooks"
      title={w?.description || 'Webhook'}
      aside={hook.dataUpdatedAt > 0 && <AsOf at={new Date(hook.dataUpdatedAt).toISOString()} />}
      actions={
        w &&
        may('settings:write') && (
          <>
            <Button loading={busy} onClick={() => void act('No test was sent', () => data(api.POST('/console/api/v1/webhooks/{id}/test', path)), 'A test event is on its way.')} leftSection={<Icon name="send" size={14} />}>
              Send a test
            </Button>
            <Menu position="bottom-end">
              <Menu.Target>
                <Button variant="default">More</Button>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item onClick={() => setEditing(true)}>Change</Menu.Item>
                {w.status === 'active' ? <Menu.Item onClick={() => void setStatus('disabled')}>Disable</Menu.Item> : <Menu.Item onClick={() => void setStatus('active')}>Activate: send what is waiting</Menu.Item>}
                <Menu.Item onClick={() => void rotate()}>Make a new secret</Menu.Item>
                <Menu.Divider />
                <Menu.Item onClick={() => void remove()}>Remove</Menu.Item>
              </Menu.Dropdown>
            </Menu>
          </>
        )
      }
    >
      <AnchorLink to="/settings/webhooks" size="sm">
        All webhooks
      </AnchorLink>
      <QueryView query={hook} what="the webhook">
        {(w) => (
          <Stack gap="md" mt="sm">
            <Facts w={w} />
            {w.status === 'gone' && (
              <Alert color="red" variant="light" icon={<Icon name="alert" />} title="The endpoint answered 410 Gone">
                Nothing is sent any more. Make it active again when it is back.
              </Alert>
            )}
            {w.last_error && w.failing > 0 && (
              <Alert color="red" variant="light" icon={<Icon name="alert" />} title={`${count(w.failing)} ${w.failing === 1 ? 'attempt has' : 'attempts have'} failed in a row`}>
                {w.last_error}
                {w.last_failed_at && `, ${ago(w.last_failed_at, Date.now())}`}
              </Alert>
            )}
            <Tabs value={tab} onChange={(v) => void navigate({ to: '/settings/webhooks/$id', params: { id }, search: { tab: v === 'dead' ? 'dead' : undefined }, replace: true })} keepMounted={false}>
              <Tabs.List>
                <Tabs.Tab value="deliveries">Deliveries</Tabs.Tab>
                <Tabs.Tab value="dead" rightSection={w.dead_letters > 0 && <Badge size="sm" color="red.9" variant="filled">{count(w.dead_letters)}</Badge>}>
                  Dead letters
                </Tabs.Tab>
              </Tabs.List>
              <Tabs.Panel value="deliveries" pt="sm">
                <Deliveries id={id} waits={w.waiting > 0 && w.status === 'active'} seen={w.delivered + w.failures} />
              </Tabs.Panel>
              <Tabs.Panel value="dead" pt="sm">
                <DeadLetters id={id} />
              </Tabs.Panel>
            </Tabs>
          </Stack>
        )}
      </QueryView>
      {editing && w && <HookForm hook={w} onClose={() => setEditing(false)} />}
      <SecretOnce title="The new secret of the webhook" secrets={secret === null ? null : [{ label: 'Signing secret', value: secret }]} onClose={() => setSecret(null)} />
    </SettingsPage>
  )
}

function Facts({ w }: { w: Hook }) {
  return (
    <Paper withBorder p="sm">
      <Group gap="xl" align="flex-start">
        <div style={{ minWidth: 0, flex: '1 1 240px' }}>
          <Group gap="xs">
            <HookStatus w={w} />
            {w.ordered && <Text size="xs" c="dimmed">in order</Text>}
          </Group>
          <Text size="sm" mt={4} style={{ overflowWrap: 'anywhere' }}>
            {w.url}
          </Text>
          <Text size="xs" c="dimmed">
            {w.events.join(', ')}
          </Text>
        </div>
        {([['Delivered', w.delivered], ['Waiting', w.waiting], ['Failed attempts', w.failures], ['Dropped', w.dropped]] as const).map(([label, n]) => (
          <div key={label}>
            <Text size="xs" c="dimmed">
              {label}
            </Text>
            <Text fw={600} className="numbers">
              {count(n)}
            </Text>
          </div>
        ))}
      </Group>
    </Paper>
  )
}

const statusColours = { delivered: 'teal.9', waiting: 'gray.7', failed: 'red.9' } as const

function Deliveries({ id, waits, seen }: { id: string; waits: boolean; seen: number }) {
  const { status } = route.useSearch()
  const navigate = route.useNavigate()
  const list = useInfiniteQuery({
    queryKey: ['deliveries', id, status, seen],
    queryFn: ({ pageParam, signal }) => whole(api.GET('/console/api/v1/webhooks/{id}/deliveries', { params: { path: { id }, query: { limit: 50, cursor: pageParam, status } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (p) => p.next ?? undefined,
    refetchInterval: waits ? again : false,
    placeholderData: (old) => old,
  })
  const all = list.data?.pages.flatMap((p) => p.data) ?? []
  return (
    <Stack gap="sm">
      <NativeSelect aria-label="Status" w={200} value={status ?? ''} onChange={(e) => void navigate({ search: (s) => ({ ...s, status: (e.currentTarget.value || undefined) as typeof status }), replace: true })} data={[{ value: '', label: 'All' }, { value: 'delivered', label: 'Delivered' }, { value: 'waiting', label: 'Wait for the next attempt' }, { value: 'failed', label: 'Failed' }]} />
      {list.isError && <Failed error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Loading what="the deliveries" />}
      {list.isSuccess && all.length === 0 && <Empty icon="send" title="No delivery">{status ? 'None has this status.' : 'Deliveries are listed after their first attempt. Send a test to see one.'}</Empty>}
      {all.length > 0 && (
        <Paper withBorder>
          {all.map((d) => (
            <DeliveryRow key={d._id} id={id} d={d} />
          ))}
        </Paper>
      )}
      {list.hasNextPage && (
        <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show older ones
        </Button>
      )}
    </Stack>
  )
}

function DeliveryRow({ id, d }: { id: string; d: Schemas['WebhookDelivery'] }) {
  const may = useMay()
  const [open, setOpen] = useState(false)
  const [act, busy] = useAct('webhook', 'webhooks', 'deliveries', 'dead-letters', 'delivery')
  const path = { params: { path: { id, delivery: d._id } } }
  const details = useQuery({ queryKey: ['delivery', id, d._id, d.attempts], queryFn: () => data(api.GET('/console/api/v1/webhooks/{id}/deliveries/{delivery}', path)), enabled: open && may('settings:write') })
  const a = d.last_attempt
  return (
    <div style={{ borderBottom: '1px solid var(--mantine-color-default-border)' }}>
      <UnstyledButton w="100%" px="sm" py={8} aria-expanded={open} onClick={() => setOpen(!open)}>
        <Group gap="sm" wrap="wrap">
          <Icon name={open ? 'chevronDown' : 'chevronRight'} size={14} />
          <Badge color={statusColours[d.status]} variant="filled" tt="none">
            {d.status}
          </Badge>
          <Text size="sm" fw={600}>
            {d.event}
          </Text>
          <Text size="sm" c="dimmed">
            {a.status_code !== null ? `answered ${a.status_code}` : a.error} after {count(a.duration_ms)} ms, attempt {a.number}
          </Text>
          <Text size="xs" c="dimmed" title={instant(a.at)}>
            {ago(a.at, Date.now())}
          </Text>
          {d.next_attempt_at && (
            <Text size="xs" c="dimmed" title={instant(d.next_attempt_at)}>
              next attempt at {timeOfDay(d.next_attempt_at)}
            </Text>
          )}
        </Group>
      </UnstyledButton>
      <Collapse expanded={open}>
        <Stack px="md" pb="sm" gap="xs">
          {!may('settings:write') && <Text size="sm" c="dimmed">The body has personal data: to see it you need the permission settings:write.</Text>}
          {details.isError && <Failed error={details.error} />}
          {details.data && (
            <>
              <Table verticalSpacing={4}>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Attempt</Table.Th>
                    <Table.Th>At</Table.Th>
                    <Table.Th>Took</Table.Th>
                    <Table.Th>Answer</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {details.data.log.map((x) => (
                    <Table.Tr key={`${x.number} ${x.at}`}>
                      <Table.Td>{x.number}</Table.Td>
                      <Table.Td>{instant(x.at)}</Table.Td>
                      <Table.Td>{count(x.duration_ms)} ms</Table.Td>
                      <Table.Td style={{ overflowWrap: 'anywhere' }}>
                        {[x.status_code, x.error, x.answer].filter(Boolean).join(' · ') || 'none'}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
              <Group justify="space-between">
                <Text size="xs" c="dimmed">
                  Body, {count(details.data.body_bytes)} bytes; webhook-id {d._id}
                </Text>
                <CopyButton value={details.data.body} label="Copy the body" size="compact-xs" />
              </Group>
              <Code block tabIndex={0} aria-label="Body" style={{ maxHeight: 280, overflow: 'auto', whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
                {pretty(details.data.body)}
              </Code>
            </>
          )}
          {may('settings:write') && (
            <Group>
              <Button size="xs" variant="default" loading={busy} onClick={() => void act('It was not sent again', () => data(api.POST('/console/api/v1/webhooks/{id}/deliveries/{delivery}/redeliver', path)), 'It is sent again under the same webhook-id.')}>
                Send it again
              </Button>
            </Group>
          )}
        </Stack>
      </Collapse>
    </div>
  )
}

function pretty(body: string): string {
  try {
    return writeJson(parseJson(body), 2)
  } catch {
    return body
  }
}

function DeadLetters({ id }: { id: string }) {
  const may = useMay()
  const confirm = useConfirm()
  const [act, busy] = useAct('webhook', 'webhooks', 'deliveries', 'dead-letters')
  const list = useInfiniteQuery({
    queryKey: ['dead-letters', id],
    queryFn: ({ pageParam, signal }) => whole(api.GET('/console/api/v1/webhooks/{id}/dead-letters', { params: { path: { id }, query: { limit: 50, cursor: pageParam } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (p) => p.next ?? undefined,
  })
  const all = list.data?.pages.flatMap((p) => p.data) ?? []
  const replayAll = async () => {
    if (await confirm({ title: 'Send all dead letters again?', body: 'Each goes out once more under its own webhook-id. Fix the endpoint first.', yes: 'Send them all' }))
      await act('They were not sent again', () => data(api.POST('/console/api/v1/webhooks/{id}/dead-letters/replay', { params: { path: { id } } })), 'The dead letters are sent again.')
  }
  if (list.isError) return <Failed error={list.error} retry={() => void list.refetch()} />
  if (list.isPending) return <Loading what="the dead letters" />
  if (all.length === 0) return <Empty icon="check" title="No dead letter">Deliveries that were given up after their last attempt are listed here.</Empty>
  return (
    <Stack gap="sm">
      {may('settings:write') && (
        <Group>
          <Button variant="default" loading={busy} onClick={() => void replayAll()}>
            Send all again
          </Button>
        </Group>
      )}
      <Paper withBorder>
        <ScrollTable label="Table of dead letters" minWidth={480}>
          <Table verticalSpacing="xs">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Event</Table.Th>
                <Table.Th>Given up</Table.Th>
                <Table.Th>Why</Table.Th>
                <Table.Th w={120} aria-label="Actions" />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {all.map((l) => (
                <Table.Tr key={l.seq}>
                  <Table.Td>{l.event}</Table.Td>
                  <Table.Td title={instant(l.died_at)}>{ago(l.died_at, Date.now())}</Table.Td>
                  <Table.Td style={{ overflowWrap: 'anywhere' }}>
                    {l.reason} ({count(l.attempts)} attempts)
                  </Table.Td>
                  <Table.Td ta="right">
                    {may('settings:write') && (
                      <Button size="compact-sm" variant="default" loading={busy} onClick={() => void act('It was not sent again', () => data(api.POST('/console/api/v1/webhooks/{id}/dead-letters/{seq}/replay', { params: { path: { id, seq: l.seq as never } } })), 'It is sent again.')}>
                        Send again
                      </Button>
                    )}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </ScrollTable>
      </Paper>
      {list.hasNextPage && (
        <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show more
        </Button>
      )}
    </Stack>
  )
}
