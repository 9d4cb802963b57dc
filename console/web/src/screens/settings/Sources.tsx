import { Badge, Button, Group, Modal, Radio, Stack, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { ago, date, instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { ListTable, oneLine, type Column } from '@/shared/ListTable'
import { Empty, QueryView } from '@/shared/states'
import { allPages } from './allPages'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

export type EventSource = Schemas['Source']

export const kindWords = { browser: 'pages', server: 'servers' } as const

/** The key of a server that was just made is known to this page until it is loaded again. */
export const newKeyOf = (id: string) => ['new-write-key', id]

export function SourceStatus({ s }: { s: EventSource }) {
  const [colour, word] = !s.enabled ? ['gray.7', 'off'] : s.keys.every((k) => k.revoked) ? ['red.9', 'no key'] : s.last_used_at ? ['teal.9', 'sends'] : ['gray.7', 'no call yet']
  return (
    <Badge color={colour} variant="filled" tt="none" miw="max-content">
      {word}
    </Badge>
  )
}

const columns: Column<EventSource>[] = [
  {
    title: 'Name',
    td: () => ({ maw: 320 }),
    cell: (s) => (
      <AnchorLink to="/settings/sources/$id" params={{ id: s._id }} size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
        {s.name}
      </AnchorLink>
    ),
  },
  { title: 'For', cell: (s) => kindWords[s.kind] },
  { title: 'Status', cell: (s) => <SourceStatus s={s} /> },
  { title: 'Last call', td: (s) => ({ ...oneLine, title: s.last_used_at ? instant(s.last_used_at) : undefined }), cell: (s) => (s.last_used_at ? ago(s.last_used_at, Date.now()) : 'never') },
  { title: 'Made', td: () => oneLine, cell: (s) => date(s.created_at) },
]

/** /settings/sources: the applications that send by an SDK. */
export function Sources() {
  const may = useMay()
  const sources = useQuery({ queryKey: ['sources'], queryFn: () => allPages((cursor) => api.GET('/console/api/v1/sources', { params: { query: { limit: 100, cursor } } })), enabled: may('events:read') })
  const [creating, setCreating] = useState(false)
  const create = may('events:write') && (
    <Button onClick={() => setCreating(true)} leftSection={<Icon name="plus" size={14} />}>
      New source
    </Button>
  )
  return (
    <SettingsPage section="/settings/sources" title="Sources" aside={sources.dataUpdatedAt > 0 && <AsOf at={new Date(sources.dataUpdatedAt).toISOString()} />} actions={create}>
      <QueryView query={sources} what="the sources">
        {(list) =>
          list.length === 0 ? (
            <Empty icon="send" title="There is no source" action={create}>
              A source is an application that sends events with an SDK of Segment, RudderStack or PostHog. Change its host name and its write key, and it sends here.
            </Empty>
          ) : (
            <ListTable label="Table of sources" minWidth={560} columns={columns} rows={list} />
          )
        }
      </QueryView>
      <NewSource opened={creating} onClose={() => setCreating(false)} />
    </SettingsPage>
  )
}

function NewSource({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [kind, setKind] = useState<EventSource['kind']>('browser')
  const [act, busy] = useAct('sources')
  const make = async () => {
    const made = await act('The source was not made', () => data(api.POST('/console/api/v1/sources', { body: { name: name.trim(), kind } })))
    if (!made) return
    client.setQueryData(newKeyOf(made._id), made.write_key)
    setName('')
    onClose()
    void navigate({ to: '/settings/sources/$id', params: { id: made._id } })
  }
  return (
    <Modal opened={opened} onClose={onClose} title="New source" size="md">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void make()
        }}
      >
        <Stack>
          <TextInput label="Name" description="The application that sends, such as the shop" required value={name} onChange={(e) => setName(e.currentTarget.value)} data-autofocus />
          <Radio.Group label="Where it runs" description="It cannot be changed later." value={kind} onChange={(v) => setKind(v as EventSource['kind'])}>
            <Stack gap="xs" mt="xs">
              <Radio value="browser" label="Pages and apps" description="Everybody can read its key. It attaches a visitor to the person who signs in, and never brings two known people together." />
              <Radio value="server" label="Servers" description="Its key is a secret, and shown once. It may bring people together." />
            </Stack>
          </Radio.Group>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy} disabled={name.trim() === ''}>
              Make the source
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

/** What people read of a write key: its first characters, or when it was made where they are not kept. */
export function keyName(k: Schemas['WriteKey']): string {
  return k.key ?? `made on ${date(k.created_at)}`
}

export function Hint({ children }: { children: string }) {
  return (
    <Text size="sm" c="dimmed" mb="sm">
      {children}
    </Text>
  )
}
