import { Badge, Button, Group, Menu, Paper, Table, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { api, data, whole, type Schemas } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { allPages } from '@/shared/api/pages'
import { useMay } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { count, date } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { RowActions } from '@/shared/RowActions'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { triggerNames } from './model'

type Flow = Schemas['Flow']
type Definition = Schemas['ReadyFlow']['definition']
const empty: Definition = { name: 'New flow', trigger: null, reentry: 'once', steps: [] }
const route = getRouteApi('/shell/flows')

export function FlowStatus({ flow }: { flow: Pick<Flow, 'status' | 'publishing'> }) {
  const colour = { live: 'teal', draft: 'gray', paused: 'yellow' }[flow.status] ?? 'gray'
  return (
    <Badge size="sm" variant="light" color={colour} c="var(--mantine-color-text)">
      {flow.publishing ? 'publishing' : flow.status}
    </Badge>
  )
}

/** /flows: the newest first, with how many people are in each. */
export function FlowList() {
  const { q = '' } = route.useSearch()
  const go = route.useNavigate()
  const navigate = useNavigate()
  const client = useQueryClient()
  const may = useMay()
  const flows = useQuery({ queryKey: ['flows'], queryFn: async ({ signal }) => (await allPages((cursor) => whole(api.GET('/console/api/v1/flows', { params: { query: { limit: 100, cursor } }, signal })))).reverse(), enabled: may('flows:read') })
  const make = useMutation({
    mutationFn: (body: Definition) => data(api.POST('/console/api/v1/flows', { body })),
    onSuccess: async (f) => {
      await client.invalidateQueries({ queryKey: ['flows'] })
      await navigate({ to: '/flows/$id', params: { id: f._id }, search: { step: 'trigger' } })
    },
    onError: (e) => notifications.show({ color: 'red', title: 'The flow was not created', message: messageOf(e) }),
  })
  const ready = useQuery({ queryKey: ['ready flows'], queryFn: () => data(api.GET('/console/api/v1/ready-flows')), enabled: may('flows:write') && may('flows:read') })
  if (!may('flows:read')) return <NoPermission permission="flows:read" />
  const create = may('flows:write') && (
    <Group gap="xs">
      {(ready.data ?? []).map((r) => (
        <Button key={r.id} variant="default" title={r.about} onClick={() => make.mutate(r.definition)} loading={make.isPending} leftSection={<Icon name="plus" size={14} />}>
          {r.name}
        </Button>
      ))}
      <Button onClick={() => make.mutate(empty)} loading={make.isPending} leftSection={<Icon name="plus" size={14} />}>
        New flow
      </Button>
    </Group>
  )
  return (
    <Page title="Flows" actions={create}>
      <QueryView query={flows} what="the flows">
        {(all) =>
          all.length === 0 ? (
            <Empty icon="flow" title="There is no flow yet" action={create}>
              A flow leads each person by itself from step to step: messages, waits, conditions and more, begun by a segment, an event, a list or a date.
            </Empty>
          ) : (
            <>
              <TextInput mb="sm" maw={360} placeholder="Name" aria-label="Find a flow" value={q} onChange={(e) => void go({ search: { q: e.currentTarget.value || undefined }, replace: true })} leftSection={<Icon name="search" size={14} />} />
              <Paper withBorder>
                <ScrollTable label="Table of flows" minWidth={440}>
                  <Table verticalSpacing="xs" highlightOnHover>
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Name</Table.Th>
                        <Table.Th>Status</Table.Th>
                        <Table.Th ta="right">In it now</Table.Th>
                        <Table.Th ta="right">Entered</Table.Th>
                        <Table.Th visibleFrom="sm">Changed</Table.Th>
                        <Table.Th w={48} aria-label="Actions" />
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {all
                        .filter((f) => f.name.toLowerCase().includes(q.toLowerCase()))
                        .map((f) => (
                          <Row key={f._id} f={f} writes={may('flows:write')} />
                        ))}
                    </Table.Tbody>
                  </Table>
                </ScrollTable>
              </Paper>
            </>
          )
        }
      </QueryView>
    </Page>
  )
}

function Row({ f, writes }: { f: Flow; writes: boolean }) {
  const client = useQueryClient()
  const confirm = useConfirm()
  const remove = async () => {
    if (!(await confirm({ title: `Delete ${f.name}?`, body: `Its enrolments are deleted, too${f.counts.in_progress ? `: ${count(f.counts.in_progress)} people are in it now` : ''}.`, yes: 'Delete', danger: true }))) return
    try {
      await data(api.DELETE('/console/api/v1/flows/{id}', { params: { path: { id: f._id } } }))
      await client.invalidateQueries({ queryKey: ['flows'] })
    } catch (e) {
      notifications.show({ color: 'red', title: `${f.name} was not deleted`, message: messageOf(e) })
    }
  }
  return (
    <Table.Tr>
      <Table.Td>
        <AnchorLink to="/flows/$id" params={{ id: f._id }} size="sm" fw={600}>
          {f.name}
        </AnchorLink>
        <Text size="xs" c="dimmed">
          {f.trigger ? triggerNames[f.trigger.type] : 'without a trigger'}
        </Text>
      </Table.Td>
      <Table.Td>
        <FlowStatus flow={f} />
      </Table.Td>
      <Table.Td ta="right" className="numbers">
        {count(f.counts.in_progress)}
      </Table.Td>
      <Table.Td ta="right" className="numbers">
        {count(f.counts.entered)}
      </Table.Td>
      <Table.Td visibleFrom="sm">{date(f.updated_at)}</Table.Td>
      <Table.Td>
        {writes && (
          <RowActions of={f.name}>
            <Menu.Item leftSection={<Icon name="trash" size={14} />} disabled={f.status === 'live'} onClick={() => void remove()}>
              {f.status === 'live' ? 'Pause it to delete it' : 'Delete'}
            </Menu.Item>
          </RowActions>
        )}
      </Table.Td>
    </Table.Tr>
  )
}
