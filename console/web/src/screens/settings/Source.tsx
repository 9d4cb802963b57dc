import { Alert, Button, Code, Group, Menu, NativeSelect, Paper, Radio, Stack, Switch, Table, Text, Textarea, TextInput, Title } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { useConfirm } from '@/shared/confirm'
import { CopyButton } from '@/shared/CopyButton'
import { ago, instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { ScrollTable } from '@/shared/ScrollTable'
import { QueryView } from '@/shared/states'
import { useStream } from '@/shared/useStream'
import { KeyCells } from './KeyCells'
import { SecretOnce } from './SecretOnce'
import { SettingsPage } from './SettingsPage'
import { originsOf, snippets } from './snippets'
import { Hint, keyName, kindWords, newKeyOf, SourceStatus, type EventSource } from './Sources'
import { useAct } from './useAct'

const route = getRouteApi('/shell/settings/sources/$id')

/** What stands in a snippet for a key that only its owner has. */
const unknownKey = 'YOUR_WRITE_KEY'

/** /settings/sources/$id: how to send to a source, its keys and its settings. */
export function Source() {
  const { id } = route.useParams()
  const navigate = useNavigate()
  const client = useQueryClient()
  const may = useMay()
  const confirm = useConfirm()
  const path = { params: { path: { id } } }
  const source = useQuery({ queryKey: ['source', id], queryFn: () => data(api.GET('/console/api/v1/sources/{id}', path)), enabled: may('events:read') })
  const [act, busy] = useAct('source', 'sources')
  const [deleteIt] = useAct('sources') // what is deleted is not read again
  const [shown, setShown] = useState<string | null>(null)
  const s = source.data
  const writes = may('events:write')
  const remove = async () => {
    if (!(await confirm({ title: `Delete ${s?.name}?`, body: 'Applications with its keys are refused from now on, and the events that they go on sending are lost. Events that were sent stay.', yes: 'Delete', danger: true }))) return
    if (await deleteIt('The source was not deleted', () => data(api.DELETE('/console/api/v1/sources/{id}', path)).then(() => true), `${s?.name} is deleted.`)) void navigate({ to: '/settings/sources' })
  }
  const addKey = async () => {
    const made = await act('There is no new key', () => data(api.POST('/console/api/v1/sources/{id}/keys', path)))
    if (!made) return
    client.setQueryData(newKeyOf(id), made.write_key)
    if (made.kind === 'server') setShown(made.write_key)
  }
  return (
    <SettingsPage
      section="/settings/sources"
      title={s?.name ?? 'Source'}
      aside={source.dataUpdatedAt > 0 && <AsOf at={new Date(source.dataUpdatedAt).toISOString()} />}
      actions={
        s &&
        writes && (
          <>
            <Button loading={busy} onClick={() => void addKey()} leftSection={<Icon name="plus" size={14} />}>
              New key
            </Button>
            <Menu position="bottom-end">
              <Menu.Target>
                <Button variant="default">More</Button>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item onClick={() => void act('It was not changed', () => data(api.PATCH('/console/api/v1/sources/{id}', { ...path, body: { enabled: !s.enabled } })))}>{s.enabled ? 'Turn off: refuse its calls' : 'Turn on'}</Menu.Item>
                <Menu.Divider />
                <Menu.Item onClick={() => void remove()}>Delete</Menu.Item>
              </Menu.Dropdown>
            </Menu>
          </>
        )
      }
    >
      <AnchorLink to="/settings/sources" size="sm">
        All sources
      </AnchorLink>
      <QueryView query={source} what="the source">
        {(s) => (
          <Stack gap="md" mt="sm">
            <FirstCall s={s} />
            <Sending s={s} />
            <Keys s={s} writes={writes} />
            {writes && <SourceSettings key={s._id} s={s} />}
          </Stack>
        )}
      </QueryView>
      <SecretOnce title="The new write key" secrets={shown === null ? null : [{ label: 'Write key', value: shown }]} note="Move the application to it, then revoke the old one." onClose={() => setShown(null)} />
    </SettingsPage>
  )
}

/** What the live stream says of an event that came through a source. */
interface FromSource {
  source_id?: string
  timestamp: string
  reason?: string
}

/** Whether the application has called, and the last of its events that was refused. Both show by the live stream, which begins with what was refused lately. */
function FirstCall({ s }: { s: EventSource }) {
  const client = useQueryClient()
  const [refused, setRefused] = useState<FromSource | null>(null)
  const look = (e: FromSource) => {
    if (e.source_id === s._id && s.last_used_at === null) void client.invalidateQueries({ queryKey: ['source', s._id] })
  }
  const stream = useStream(s.enabled ? '/console/api/v1/events/live' : null, {
    event: (e) => look(e as FromSource),
    refused: (e) => {
      const event = e as FromSource
      if (event.source_id === s._id) setRefused(event)
      look(event)
    },
  })
  return (
    <Paper withBorder p="sm" role="status" aria-label="Calls of this source">
      <Group gap="sm">
        <SourceStatus s={s} />
        <Text size="sm">For {kindWords[s.kind]}.</Text>
        {s.last_used_at ? (
          <Text size="sm" title={instant(s.last_used_at)}>
            The last call came {ago(s.last_used_at, Date.now())}. <AnchorLink to="/live" size="sm">Live events</AnchorLink> show what arrives and what is refused.
          </Text>
        ) : !s.enabled ? (
          <Text size="sm">It is off: all its calls are refused.</Text>
        ) : (
          <Text size="sm">{stream === 'open' ? 'Waiting for the first call: it shows here when it arrives.' : 'No call has arrived.'}</Text>
        )}
      </Group>
      {refused && (
        <Alert color="yellow" variant="light" icon={<Icon name="alert" />} mt="sm" title={`An event was refused at ${instant(refused.timestamp)}`}>
          {refused.reason}
        </Alert>
      )}
    </Paper>
  )
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Title order={3} size="h5" mb={4}>
        {title}
      </Title>
      {children}
    </Paper>
  )
}

function Sending({ s }: { s: EventSource }) {
  const made = useQuery<string>({ queryKey: newKeyOf(s._id), enabled: false, gcTime: Infinity }).data
  const valid = s.keys.filter((k) => !k.revoked)
  const key = s.kind === 'browser' ? valid.at(-1)?.key : valid.length > 0 ? made : undefined
  const list = snippets(s.kind, window.location.origin, key ?? unknownKey)
  const [chosen, setChosen] = useState(list[0]!.id)
  const snippet = list.find((x) => x.id === chosen) ?? list[0]!
  return (
    <Section title="Send events">
      {valid.length === 0 ? (
        <Hint>It has no key that holds. Make one to send.</Hint>
      ) : (
        <>
          <Hint>An application that uses one of these already needs another host and key, and nothing else.</Hint>
          <NativeSelect label="SDK" value={snippet.id} onChange={(e) => setChosen(e.currentTarget.value)} data={list.map((x) => ({ value: x.id, label: x.label }))} maw={320} mb="sm" />
          {key === undefined && (
            <Text size="sm" mb="sm">
              Put the write key in the place of {unknownKey}. The server keeps only its hash; if you have lost it, make a new one.
            </Text>
          )}
          {key !== undefined && s.kind === 'server' && (
            <Alert color="yellow" variant="light" icon={<Icon name="alert" />} mb="sm">
              The write key is in the code below, now and never again. Copy it before you leave this page.
            </Alert>
          )}
          {snippet.install && (
            <Code block mb="xs" tabIndex={0} aria-label="To install">
              {snippet.install}
            </Code>
          )}
          <Code block tabIndex={0} aria-label="Code to send events">
            {snippet.code}
          </Code>
          <Group mt="xs" gap="sm">
            <CopyButton value={snippet.code} label="Copy the code" />
            {key && <CopyButton value={key} label="Copy the write key" />}
            {snippet.note && <Text size="sm">{snippet.note}</Text>}
          </Group>
        </>
      )}
    </Section>
  )
}

function Keys({ s, writes }: { s: EventSource; writes: boolean }) {
  return (
    <Section title="Write keys">
      <Hint>{s.kind === 'browser' ? 'Everybody who opens a page can read its key. To replace one, make a new one, move the pages to it, and revoke the old one.' : 'The server keeps only hashes. To replace a key, make a new one, move the application to it, and revoke the old one.'}</Hint>
      <ScrollTable label="Table of write keys" minWidth={480}>
        <Table verticalSpacing="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Key</Table.Th>
              <Table.Th>Made</Table.Th>
              <Table.Th>Last used</Table.Th>
              <Table.Th w={100} aria-label="Actions" />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {s.keys.map((k) => (
              <KeyRow key={k._id} s={s} k={k} writes={writes} />
            ))}
          </Table.Tbody>
        </Table>
      </ScrollTable>
    </Section>
  )
}

function KeyRow({ s, k, writes }: { s: EventSource; k: Schemas['WriteKey']; writes: boolean }) {
  const confirm = useConfirm()
  const [act, busy] = useAct('source', 'sources')
  const revoke = async () => {
    if (!(await confirm({ title: 'Revoke this write key?', body: 'Applications that use it are refused from now on, and the events that they go on sending are lost. It cannot be made valid again.', yes: 'Revoke', danger: true }))) return
    await act('The key was not revoked', () => data(api.DELETE('/console/api/v1/sources/{id}/keys/{key}', { params: { path: { id: s._id, key: k._id } } })), 'The key is revoked.')
  }
  return (
    <Table.Tr>
      <Table.Td maw={320}>
        <Text size="sm" ff={k.key ? 'monospace' : undefined} td={k.revoked ? 'line-through' : undefined} style={{ overflowWrap: 'anywhere' }}>
          {keyName(k)}
        </Text>
      </Table.Td>
      <KeyCells k={k} label={`Revoke the key ${keyName(k)}`} busy={busy} onRevoke={writes ? () => void revoke() : undefined} />
    </Table.Tr>
  )
}

function SourceSettings({ s }: { s: EventSource }) {
  const [name, setName] = useState(s.name)
  const [origins, setOrigins] = useState(s.allowed_origins.join('\n'))
  const [userID, setUserID] = useState(s.user_id)
  const [context, setContext] = useState(s.keep_context)
  const [act, busy] = useAct('source', 'sources')
  const browser = s.kind === 'browser'
  const list = originsOf(origins)
  const save = () =>
    act(
      'The settings were not saved',
      () => data(api.PATCH('/console/api/v1/sources/{id}', { params: { path: { id: s._id } }, body: { name: name.trim(), user_id: userID, keep_context: context, ...(browser ? { allowed_origins: list } : {}) } })),
      'The settings are saved.',
    )
  return (
    <Section title="Settings">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void save()
        }}
      >
        <Stack gap="sm" maw={520} mt="xs">
          <TextInput label="Name" required value={name} onChange={(e) => setName(e.currentTarget.value)} />
          {browser && (
            <Textarea
              label="Allowed origins"
              description="Pages that may send: one a line, such as https://shop.example, or https://*.shop.example for all below it. * allows every page."
              autosize
              minRows={2}
              value={origins}
              onChange={(e) => setOrigins(e.currentTarget.value)}
              error={list.length === 0 ? 'No page may send' : undefined}
            />
          )}
          <Radio.Group label="What userId of its calls is" value={userID} onChange={(v) => setUserID(v as EventSource['user_id'])}>
            <Group mt="xs">
              <Radio value="external_id" label="An identifier of yours" />
              <Radio value="email" label="An e-mail address" />
            </Group>
          </Radio.Group>
          <Switch label="Keep the context of calls" description="Browser, page, campaign and the like, among the properties of each event." checked={context} onChange={(e) => setContext(e.currentTarget.checked)} />
          <Group>
            <Button type="submit" loading={busy} disabled={name.trim() === ''}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  )
}
