import { Alert, Anchor, Autocomplete, Badge, Box, Button, Checkbox, Group, List, NativeSelect, Paper, Progress, SimpleGrid, Stack, Table, Text, TextInput, Title } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { notifications } from '@mantine/notifications'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { count } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { Failed, Loading, QueryView } from '@/shared/states'
import { useLists } from '../segments/useSuggestions'
import classes from './imports.module.css'
import { again, colours, goesOn, words, type Import } from './Imports'

const route = getRouteApi('/shell/imports/$id')

/** /imports/$id: what the columns become, then the progress and the refused rows. */
export function ImportPage() {
  const { id } = route.useParams()
  const client = useQueryClient()
  const navigate = useNavigate()
  const confirm = useConfirm()
  const may = useMay()
  const query = useQuery({ queryKey: ['import', id], queryFn: () => data(api.GET('/console/api/v1/imports/{id}', { params: { path: { id } } })), refetchInterval: (q) => (goesOn(q.state.data) ? again : false) })
  const i = query.data
  const act = async (failed: string, change: () => Promise<unknown>) => {
    try {
      await change()
      return true
    } catch (e) {
      notifications.show({ color: 'red', title: failed, message: messageOf(e) })
      return false
    } finally {
      await client.invalidateQueries({ queryKey: ['import', id] })
      await client.invalidateQueries({ queryKey: ['imports'] })
    }
  }
  const path = { params: { path: { id } } }
  const cancel = async () => {
    if (await confirm({ title: 'Cancel the import?', body: 'What is stored stays. The file is removed.', yes: 'Cancel the import', danger: true })) await act('It was not cancelled', () => data(api.POST('/console/api/v1/imports/{id}/cancel', path)))
  }
  const remove = async () => {
    if (!(await confirm({ title: 'Remove it from the list?', body: 'What it stored stays. The file and the refused rows are gone.', yes: 'Remove', danger: true }))) return
    if (await act('It was not removed', () => data(api.DELETE('/console/api/v1/imports/{id}', path)))) void navigate({ to: '/imports' })
  }
  return (
    <Page
      title={i?.name ?? 'Import'}
      aside={
        i && (
          <Badge color={colours[i.status]} variant="filled" tt="none">
            {words[i.status]}
          </Badge>
        )
      }
      actions={
        i &&
        may('contacts:write') && (
          <>
            {goesOn(i) && (
              <Button variant="default" onClick={() => void cancel()}>
                Cancel
              </Button>
            )}
            {!goesOn(i) && (
              <Button variant="default" onClick={() => void remove()}>
                Remove
              </Button>
            )}
          </>
        )
      }
    >
      <Stack gap="md">
        <AnchorLink to="/imports" size="sm">
          All imports
        </AnchorLink>
        <QueryView query={query} what="the import">{(i) => (i.status === 'ready' ? <Plan i={i} start={(body) => act('It was not started', () => data(api.POST('/console/api/v1/imports/{id}/start', { ...path, body })))} /> : i.status === 'receiving' ? <Text size="sm">Parts of the file are missing: its upload was interrupted. Remove it and upload the file again.</Text> : <Progressing i={i} />)}</QueryView>
      </Stack>
    </Page>
  )
}

type Body = NonNullable<Parameters<typeof previewCall>[1]>
const previewCall = (id: string, body: { columns?: { name: string; field?: string; type?: 'text' | 'number' | 'boolean' | 'time' }[]; event_type?: string; list_id?: string; trigger_flows?: boolean }, signal?: AbortSignal) => data(api.POST('/console/api/v1/imports/{id}/preview', { params: { path: { id } }, body, signal }))

function Plan({ i, start }: { i: Import; start: (body: Body) => Promise<boolean> }) {
  const may = useMay()
  const confirm = useConfirm()
  const [columns, setColumns] = useState<Record<string, { field?: string; type?: 'text' | 'number' | 'boolean' | 'time' }>>({})
  const [eventType, setEventType] = useState('')
  const [listId, setListId] = useState('')
  const [triggers, setTriggers] = useState(false)
  const [busy, setBusy] = useState(false)
  const lists = useLists()
  const body: Body = {
    columns: Object.entries(columns).map(([name, c]) => ({ name, ...c })),
    ...(i.kind === 'events' && eventType.trim() && { event_type: eventType.trim() }),
    ...(i.kind === 'people' && listId && { list_id: listId }),
    ...(i.kind === 'events' && triggers && { trigger_flows: true }),
  }
  const [settled] = useDebouncedValue(JSON.stringify(body), 350)
  const preview = useQuery({ queryKey: ['import-preview', i._id, settled], queryFn: ({ signal }) => previewCall(i._id, JSON.parse(settled) as Body, signal), placeholderData: (old) => old, retry: false })
  const p = preview.data
  const change = (name: string, c: { field?: string; type?: string }) => setColumns({ ...columns, [name]: { ...columns[name], ...c } as (typeof columns)[string] })
  const go = async () => {
    const people = i.kind === 'people'
    const says = p!.columns.some((c) => c.field === 'subscribed' || c.field === 'unsubscribed')
    const asked = `${says ? 'People who are new count as subscribed unless their row says that they are not; people on file of whom a row says so are unsubscribed.' : 'People who are new count as subscribed: import only people who agreed, or name the column that says who did.'} People on file get what the rows say.`
    if (!(await confirm({ title: `Import ${count(p!.row_count)} rows?`, body: people ? asked : triggers ? 'The events are stored with their own times, and start flows.' : 'The events are stored with their own times. They start no flows.', yes: 'Start the import' }))) return
    setBusy(true)
    await start(body)
    setBusy(false)
  }
  if (preview.isError && !p) return <Failed error={preview.error} retry={() => void preview.refetch()} />
  if (!p) return <Loading what="the preview" />
  const fields = i.kind === 'people' ? ['email', 'external_id', 'phone', 'first_name', 'last_name', 'subscribed', 'unsubscribed', 'geo.country', 'geo.city'] : ['event_type', 'timestamp', 'idempotency_key', 'email', 'external_id', 'phone']
  const own = (name: string) => `${i.kind === 'people' ? 'attributes' : 'properties'}.${name.trim().toLowerCase().replace(/[^a-z0-9]+/g, '_').replace(/^_|_$/g, '')}`
  const stale = preview.isFetching || settled !== JSON.stringify(body)
  return (
    <>
      {preview.isError && <Failed error={preview.error} />}
      {p.fault && (
        <Alert role="status" color="red" variant="light" icon={<Icon name="alert" />} title="It cannot be started like this">
          {p.fault}
        </Alert>
      )}
      <Paper withBorder p="md">
        <Title order={2} size="h5" mb="xs">
          What the columns become
        </Title>
        <Box>
          <Table verticalSpacing={6} className={classes.plan}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Column</Table.Th>
                <Table.Th>First values</Table.Th>
                <Table.Th>Becomes</Table.Th>
                <Table.Th>Type</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {p.columns.map((c, n) => (
                <Table.Tr key={c.name + n}>
                  <Table.Td>
                    <Text size="sm" fw={600}>
                      {c.name}
                    </Text>
                  </Table.Td>
                  <Table.Td maw={260} className={classes.values}>
                    <Text size="xs" c="dimmed" truncate>
                      {p.rows.slice(0, 3).map((r) => r[n]).filter(Boolean).join(', ') || 'empty'}
                    </Text>
                  </Table.Td>
                  <Table.Td>
                    <Autocomplete aria-label={`${c.name} becomes`} size="xs" placeholder="left out" data={[...new Set([...fields, own(c.name)])]} value={columns[c.name]?.field ?? c.field ?? ''} onChange={(v) => change(c.name, { field: v })} />
                  </Table.Td>
                  <Table.Td>
                    <NativeSelect aria-label={`Type of ${c.name}`} size="xs" value={columns[c.name]?.type ?? c.type} onChange={(e) => change(c.name, { type: e.currentTarget.value })} data={['text', 'number', 'boolean', 'time']} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Box>
        {i.kind === 'people' ? (
          <NativeSelect mt="sm" maw={320} label="Put all of them on a list" value={listId} onChange={(e) => setListId(e.currentTarget.value)} data={[{ value: '', label: 'No list' }, ...(lists.data ?? []).map((l) => ({ value: l._id, label: l.name }))]} />
        ) : (
          <Group mt="sm" align="flex-end">
            <TextInput label="Event type of all rows" description="Where no column is one" value={eventType} onChange={(e) => setEventType(e.currentTarget.value)} />
            <Checkbox label="The events start flows" checked={triggers} onChange={(e) => setTriggers(e.currentTarget.checked)} />
          </Group>
        )}
      </Paper>
      <Problems p={p} />
      {may('contacts:write') && (
        <Group>
          <Button onClick={() => void go()} loading={busy || stale} disabled={p.fault !== null}>
            Start the import of {count(p.row_count)} rows
          </Button>
        </Group>
      )}
    </>
  )
}

function Problems({ p }: { p: { problems: Import['refusals']; problem_count: number; checked_rows: number } }) {
  if (p.problem_count === 0) return <Text size="sm">None of the {count(p.checked_rows)} rows that were looked at would be refused.</Text>
  return (
    <Alert color="yellow" variant="light" icon={<Icon name="alert" />} title={`${count(p.problem_count)} of ${count(p.checked_rows)} rows would be refused`}>
      <List size="sm">
        {p.problems.map((r) => (
          <List.Item key={r.line}>
            Line {count(r.line)}: {r.reason}
          </List.Item>
        ))}
      </List>
    </Alert>
  )
}

function Progressing({ i }: { i: Schemas['Import'] }) {
  return (
    <>
      {goesOn(i) && <Progress value={i.rows ? (i.rows_read / i.rows) * 100 : 0} animated aria-label="Rows processed" />}
      {i.error && (
        <Alert role="status" color={i.status === 'failed' ? 'red' : 'yellow'} variant="light" icon={<Icon name="alert" />}>
          {i.error}
        </Alert>
      )}
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
        {(
          [
            ['Rows', `${count(i.rows_read)} of ${i.rows == null ? '?' : count(i.rows)}`],
            ['Stored', count(i.taken)],
            ['Stored before', count(i.duplicates)],
            ['Refused', count(i.refused)],
          ] as const
        ).map(([label, value]) => (
          <Paper key={label} withBorder p="sm">
            <Text size="xs" c="dimmed">
              {label}
            </Text>
            <Text fw={600} className="numbers" data-testid={`import-${label}`}>
              {value}
            </Text>
          </Paper>
        ))}
      </SimpleGrid>
      {i.status === 'running' && (
        <Text size="xs" c="dimmed">
          {count(Math.round(i.rows_per_second))} rows a second. You can leave this page; the import continues.
        </Text>
      )}
      {i.refused > 0 && (
        <Paper withBorder p="md">
          <Group justify="space-between" mb="xs">
            <Title order={2} size="h5">
              Refused rows
            </Title>
            {!goesOn(i) && (
              <Anchor href={`/console/api/v1/imports/${encodeURIComponent(i._id)}/refused`} download={`refused-${i.name}`} size="sm">
                Download them to mend
              </Anchor>
            )}
          </Group>
          <List size="sm">
            {i.refusals.map((r) => (
              <List.Item key={r.line}>
                Line {count(r.line)}: {r.reason}
              </List.Item>
            ))}
          </List>
        </Paper>
      )}
    </>
  )
}
