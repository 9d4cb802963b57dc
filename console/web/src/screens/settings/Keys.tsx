import { Button, Code, Group, Modal, Paper, Stack, Table, Text, TextInput, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay, useSession } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { CopyButton } from '@/shared/CopyButton'
import { Icon } from '@/shared/icons'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, QueryView } from '@/shared/states'
import { allPages } from './allPages'
import { KeyCells } from './KeyCells'
import { forKeys, inShort, PermissionPicker } from './PermissionPicker'
import { SecretOnce } from './SecretOnce'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

/** /settings/keys: API keys, and App ID with App Secret. */
export function Keys() {
  const may = useMay()
  const keys = useQuery({ queryKey: ['api-keys'], queryFn: () => allPages((cursor) => api.GET('/console/api/v1/api-keys', { params: { query: { limit: 100, cursor } } })), enabled: may('api_keys:read') })
  const [creating, setCreating] = useState(false)
  const [made, setMade] = useState<string | null>(null)
  const writes = may('api_keys:write')
  return (
    <SettingsPage
      section="/settings/keys"
      title="API keys"
      actions={
        writes && (
          <Button onClick={() => setCreating(true)} leftSection={<Icon name="plus" size={14} />}>
            New API key
          </Button>
        )
      }
    >
      <Stack gap="lg">
        <QueryView query={keys} what="the keys">
          {(list) =>
            list.length === 0 ? (
              <Empty icon="lock" title="There is no API key">
                Programs use a key to read and change people, segments and campaigns.
              </Empty>
            ) : (
              <Paper withBorder>
                <ScrollTable label="Table of API keys" minWidth={560}>
                  <Table verticalSpacing="xs">
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Name</Table.Th>
                        <Table.Th>May</Table.Th>
                        <Table.Th>Made</Table.Th>
                        <Table.Th>Last used</Table.Th>
                        <Table.Th w={100} aria-label="Actions" />
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {list.map((k) => (
                        <KeyRow key={k._id} k={k} writes={writes} />
                      ))}
                    </Table.Tbody>
                  </Table>
                </ScrollTable>
              </Paper>
            )
          }
        </QueryView>
        <AppSecret />
      </Stack>
      <NewKey opened={creating} onClose={() => setCreating(false)} onMade={setMade} />
      <SecretOnce title="The new API key" secrets={made === null ? null : [{ label: 'API key', value: made }]} note="Programs send it as Authorization: Bearer …" onClose={() => setMade(null)} />
    </SettingsPage>
  )
}

function KeyRow({ k, writes }: { k: Schemas['APIKeyRecord']; writes: boolean }) {
  const confirm = useConfirm()
  const [act, busy] = useAct('api-keys')
  const revoke = async () => {
    if (!(await confirm({ title: `Revoke ${k.name}?`, body: 'Programs that use it are refused from now on. It cannot be made valid again.', yes: 'Revoke', danger: true }))) return
    await act(`${k.name} was not revoked`, () => data(api.DELETE('/console/api/v1/api-keys/{id}', { params: { path: { id: k._id } } })), `${k.name} is revoked.`)
  }
  const narrowed = k.effective_permissions.length < k.permissions.length
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600} td={k.revoked ? 'line-through' : undefined}>
          {k.name}
        </Text>
      </Table.Td>
      <Table.Td maw={320}>
        <Text size="xs">{k.revoked ? 'nothing any more' : inShort(k.effective_permissions)}</Text>
        {!k.revoked && narrowed && (
          <Text size="xs" c="dimmed">
            {k.permissions.length - k.effective_permissions.length} more were given to it, but who made it does not hold them
          </Text>
        )}
      </Table.Td>
      <KeyCells k={k} label={`Revoke ${k.name}`} busy={busy} onRevoke={writes ? () => void revoke() : undefined} />
    </Table.Tr>
  )
}

function NewKey({ opened, onClose, onMade }: { opened: boolean; onClose: () => void; onMade: (key: string) => void }) {
  const own = forKeys(useSession().data?.permissions ?? [])
  const [name, setName] = useState('')
  const [permissions, setPermissions] = useState<string[] | null>(null)
  const [act, busy] = useAct('api-keys')
  const chosen = permissions ?? own.filter((p) => p.endsWith(':read'))
  const make = async () => {
    const k = await act('The key was not made', () => data(api.POST('/console/api/v1/api-keys', { body: { name: name.trim(), permissions: chosen as never } })))
    if (!k) return
    setName('')
    setPermissions(null)
    onClose()
    onMade(k.key)
  }
  return (
    <Modal opened={opened} onClose={onClose} title="New API key" size="md">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void make()
        }}
      >
        <Stack>
          <TextInput label="Name" description="Where it is used, such as the warehouse export" required value={name} onChange={(e) => setName(e.currentTarget.value)} data-autofocus />
          <PermissionPicker value={chosen} onChange={setPermissions} from={forKeys} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy} disabled={name.trim() === '' || chosen.length === 0}>
              Make the key
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

function AppSecret() {
  const session = useSession().data
  const may = useMay()
  const confirm = useConfirm()
  const [act, busy] = useAct('audit')
  const [secret, setSecret] = useState<string | null>(null)
  const rotate = async () => {
    if (!(await confirm({ title: 'Make a new App Secret?', body: 'Programs that send events with the old one are refused from that moment, until they have the new one. The App ID stays.', yes: 'Make a new one', danger: true }))) return
    const made = await act('There is no new App Secret', () => data(api.POST('/console/api/v1/app-secret')))
    if (made) setSecret(made.app_secret)
  }
  if (!session) return null
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="app-secret">
      <Title order={3} size="h5" id="app-secret" mb={4}>
        App ID and App Secret
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        Programs send events with both, as the headers X-App-Id and X-App-Secret. The secret was shown once; the server keeps only its hash.
      </Text>
      <Group gap="sm">
        <Code style={{ overflowWrap: 'anywhere' }}>{session.app_id}</Code>
        <CopyButton value={session.app_id} label="Copy the App ID" />
        {may('settings:write') && (
          <Button size="xs" variant="default" loading={busy} onClick={() => void rotate()}>
            Make a new App Secret
          </Button>
        )}
      </Group>
      <SecretOnce title="The new App Secret" secrets={secret === null ? null : [{ label: 'App Secret', value: secret }]} onClose={() => setSecret(null)} />
    </Paper>
  )
}
