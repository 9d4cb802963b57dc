import { Badge, Button, Checkbox, Group, Modal, MultiSelect, Stack, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { ago, count, instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { ListTable, oneLine, type Column } from '@/shared/ListTable'
import { Empty, QueryView } from '@/shared/states'
import { SecretOnce } from './SecretOnce'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

export type Hook = Schemas['Webhook']

export function HookStatus({ w }: { w: Hook }) {
  const [colour, word] = w.status === 'gone' ? ['red.9', 'gone'] : w.status === 'disabled' ? ['gray.7', 'disabled'] : w.failing > 0 ? ['red.9', 'failing'] : ['teal.9', 'active']
  return (
    <Badge color={colour} variant="filled" tt="none" miw="max-content">
      {word}
    </Badge>
  )
}

const numbers = { className: 'numbers' }

const columns: Column<Hook>[] = [
  {
    title: 'Endpoint',
    td: () => ({ maw: 360 }),
    cell: (w) => (
      <>
        <AnchorLink to="/settings/webhooks/$id" params={{ id: w._id }} size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
          {w.description || w.url}
        </AnchorLink>
        <Text size="xs" c="dimmed" truncate>
          {w.description ? w.url : w.events.join(', ')}
        </Text>
      </>
    ),
  },
  { title: 'Status', cell: (w) => <HookStatus w={w} /> },
  { title: 'Delivered', right: true, td: () => numbers, cell: (w) => count(w.delivered) },
  { title: 'Waiting', right: true, td: () => numbers, cell: (w) => count(w.waiting) },
  { title: 'Dead letters', right: true, td: (w) => ({ ...numbers, fw: w.dead_letters > 0 ? 700 : undefined }), cell: (w) => count(w.dead_letters) },
  { title: 'Last delivery', td: (w) => ({ ...oneLine, title: w.last_delivered_at ? instant(w.last_delivered_at) : undefined }), cell: (w) => (w.last_delivered_at ? ago(w.last_delivered_at, Date.now()) : 'never') },
]

/** /settings/webhooks: the endpoints and how they fare. */
export function Webhooks() {
  const may = useMay()
  const hooks = useQuery({ queryKey: ['webhooks'], queryFn: () => data(api.GET('/console/api/v1/webhooks')), enabled: may('settings:read') })
  const [creating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const create = may('settings:write') && (
    <Button onClick={() => setCreating(true)} leftSection={<Icon name="plus" size={14} />}>
      New webhook
    </Button>
  )
  return (
    <SettingsPage section="/settings/webhooks" title="Webhooks" aside={hooks.dataUpdatedAt > 0 && <AsOf at={new Date(hooks.dataUpdatedAt).toISOString()} />} actions={create}>
      <QueryView query={hooks} what="the webhooks">
        {(list) =>
          list.length === 0 ? (
            <Empty icon="send" title="There is no webhook" action={create}>
              A webhook tells another system what happens here, such as who enters a segment. Deliveries are signed and tried again until they arrive.
            </Empty>
          ) : (
            <ListTable label="Table of webhooks" minWidth={620} columns={columns} rows={list} />
          )
        }
      </QueryView>
      {creating && <HookForm onClose={() => setCreating(false)} onSecret={setSecret} />}
      <SecretOnce title="The secret of the webhook" secrets={secret === null ? null : [{ label: 'Signing secret', value: secret }]} note="Your program checks the webhook-signature header with it (Standard Webhooks)." onClose={() => setSecret(null)} />
    </SettingsPage>
  )
}

/** A new endpoint, or one to change. */
export function HookForm({ hook, onClose, onSecret }: { hook?: Hook; onClose: () => void; onSecret?: (secret: string) => void }) {
  const names = useQuery({ queryKey: ['webhook-events'], queryFn: () => data(api.GET('/console/api/v1/webhooks/events')), staleTime: Infinity })
  const [url, setUrl] = useState(hook?.url ?? '')
  const [description, setDescription] = useState(hook?.description ?? '')
  const [events, setEvents] = useState<string[]>(hook?.events ?? [])
  const [ordered, setOrdered] = useState(hook?.ordered ?? false)
  const [act, busy] = useAct('webhooks', 'webhook')
  const body = { url: url.trim(), description: description.trim(), events, ordered }
  const save = async () => {
    if (hook) {
      if (await act('The webhook was not changed', () => data(api.PATCH('/console/api/v1/webhooks/{id}', { params: { path: { id: hook._id } }, body: body as never })))) onClose()
      return
    }
    const made = await act('The webhook was not made', () => data(api.POST('/console/api/v1/webhooks', { body: body as never })))
    if (!made) return
    onClose()
    onSecret?.(made.secret)
  }
  return (
    <Modal opened onClose={onClose} title={hook ? 'Change the webhook' : 'New webhook'} size="lg">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void save()
        }}
      >
        <Stack>
          <TextInput label="Address" placeholder="https://example.com/hooks/muster" type="url" required value={url} onChange={(e) => setUrl(e.currentTarget.value)} data-autofocus />
          <MultiSelect
            label="Notifications"
            required
            searchable
            data={names.data?.map((n) => n.name) ?? []}
            value={events}
            onChange={setEvents}
            renderOption={({ option }) => (
              <div>
                <Text size="sm">{option.value}</Text>
                <Text size="xs" c="dimmed">
                  {names.data?.find((n) => n.name === option.value)?.description}
                </Text>
              </div>
            )}
          />
          <TextInput label="What it is for" value={description} onChange={(e) => setDescription(e.currentTarget.value)} />
          <Checkbox label="In order: the next one is sent when the one before has arrived" checked={ordered} onChange={(e) => setOrdered(e.currentTarget.checked)} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy} disabled={url.trim() === '' || events.length === 0}>
              {hook ? 'Save' : 'Make the webhook'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
