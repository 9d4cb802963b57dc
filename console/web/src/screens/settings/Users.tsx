import { Badge, Button, Checkbox, Group, Modal, Paper, PasswordInput, Stack, Table, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay, useSession } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { date } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { ScrollTable } from '@/shared/ScrollTable'
import { QueryView } from '@/shared/states'
import { allPages } from './allPages'
import { inShort, PermissionPicker } from './PermissionPicker'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

type User = Schemas['User']

/** /settings/users: who may sign in, and what they may do. */
export function Users() {
  const may = useMay()
  const session = useSession().data
  const confirm = useConfirm()
  const users = useQuery({ queryKey: ['users'], queryFn: () => allPages((cursor) => api.GET('/console/api/v1/users', { params: { query: { limit: 100, cursor } } })), enabled: may('users:read') })
  const [editing, setEditing] = useState<User | 'new' | null>(null)
  const [act] = useAct('users', 'api-keys')
  const writes = may('users:write')
  const remove = async (u: User) => {
    if (await confirm({ title: `Remove ${u.name || u.email}?`, body: 'Their sessions end at once, and API keys that they made stop working.', yes: 'Remove', danger: true })) await act('The user was not removed', () => data(api.DELETE('/console/api/v1/users/{id}', { params: { path: { id: u._id } } })), `${u.name || u.email} is removed.`)
  }
  return (
    <SettingsPage
      section="/settings/users"
      title="Users"
      actions={
        writes && (
          <Button onClick={() => setEditing('new')} leftSection={<Icon name="plus" size={14} />}>
            New user
          </Button>
        )
      }
    >
      <QueryView query={users} what="the users">
        {(list) => (
          <Paper withBorder>
            <ScrollTable label="Table of users" minWidth={520}>
              <Table verticalSpacing="xs">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>User</Table.Th>
                    <Table.Th>May</Table.Th>
                    <Table.Th>Since</Table.Th>
                    <Table.Th aria-label="Actions" />
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {list.map((u) => (
                    <Table.Tr key={u._id}>
                      <Table.Td>
                        <Text size="sm" fw={600}>
                          {u.name || u.email}
                        </Text>
                        {u.name && (
                          <Text size="xs" c="dimmed">
                            {u.email}
                          </Text>
                        )}
                      </Table.Td>
                      <Table.Td maw={360}>
                        <Text size="xs">{inShort(u.permissions)}</Text>
                        {u.admin && (
                          <Badge size="sm" color="gray.7" variant="filled" tt="none">
                            administrator of the system
                          </Badge>
                        )}
                      </Table.Td>
                      <Table.Td style={{ whiteSpace: 'nowrap' }}>{date(u.created_at)}</Table.Td>
                      <Table.Td ta="right">
                        {writes && (
                          <Group gap="xs" justify="flex-end" wrap="nowrap">
                            <Button size="compact-sm" variant="default" onClick={() => setEditing(u)} aria-label={`Change ${u.name || u.email}`}>
                              Change
                            </Button>
                            {u._id !== session?.user_id && (
                              <Button size="compact-sm" variant="default" onClick={() => void remove(u)} aria-label={`Remove ${u.name || u.email}`}>
                                Remove
                              </Button>
                            )}
                          </Group>
                        )}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </ScrollTable>
          </Paper>
        )}
      </QueryView>
      {editing && <UserForm user={editing === 'new' ? null : editing} onClose={() => setEditing(null)} />}
    </SettingsPage>
  )
}

function UserForm({ user, onClose }: { user: User | null; onClose: () => void }) {
  const session = useSession().data
  const [email, setEmail] = useState(user?.email ?? '')
  const [name, setName] = useState(user?.name ?? '')
  const [password, setPassword] = useState('')
  const [permissions, setPermissions] = useState<string[]>(user?.permissions ?? session?.permissions.filter((p) => p.endsWith(':read')) ?? [])
  const [admin, setAdmin] = useState(user?.admin ?? false)
  const [act, busy] = useAct('users', 'api-keys', 'session')
  const save = async () => {
    const may = { permissions: permissions as never, ...(session?.admin && { admin }) }
    const done = user
      ? await act('The user was not changed', () => data(api.PATCH('/console/api/v1/users/{id}', { params: { path: { id: user._id } }, body: { ...(email !== user.email && { email }), name, ...(password && { password }), ...may } })), 'The user is changed.')
      : await act('The user was not added', () => data(api.POST('/console/api/v1/users', { body: { email, name, password, ...may } })), `${email} can sign in now.`)
    if (done) onClose()
  }
  return (
    <Modal opened onClose={onClose} title={user ? `Change ${user.name || user.email}` : 'New user'}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void save()
        }}
      >
        <Stack>
          <TextInput label="E-mail" type="email" required value={email} onChange={(e) => setEmail(e.currentTarget.value)} autoComplete="off" data-autofocus />
          <TextInput label="Name" value={name} onChange={(e) => setName(e.currentTarget.value)} autoComplete="off" />
          <PasswordInput label={user ? 'New password' : 'First password'} description={user ? 'Left empty, it stays.' : 'Give it to them; they change it under Settings.'} required={!user} value={password} onChange={(e) => setPassword(e.currentTarget.value)} autoComplete="new-password" visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }} />
          <PermissionPicker value={permissions} onChange={setPermissions} />
          {session?.admin && <Checkbox label="Administrator of the system: sees and changes all companies" checked={admin} onChange={(e) => setAdmin(e.currentTarget.checked)} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy}>
              {user ? 'Save' : 'Add the user'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
