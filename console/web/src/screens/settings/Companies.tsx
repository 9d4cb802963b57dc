import { Button, Group, Modal, NumberInput, Paper, Stack, Switch, Table, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useSession } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { count, date } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { ScrollTable } from '@/shared/ScrollTable'
import { QueryView } from '@/shared/states'
import { allPages } from './allPages'
import { SecretOnce } from './SecretOnce'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

type Company = Schemas['Company']

/** /settings/companies: all companies of the system, for its administrators. */
export function Companies() {
  const admin = useSession().data?.admin ?? false
  const companies = useQuery({ queryKey: ['companies'], queryFn: () => allPages((cursor) => api.GET('/console/api/v1/companies', { params: { query: { limit: 100, cursor } } })), enabled: admin })
  const [creating, setCreating] = useState(false)
  const [topUp, setTopUp] = useState<Company | null>(null)
  const [made, setMade] = useState<{ label: string; value: string }[] | null>(null)
  return (
    <SettingsPage
      section="/settings/companies"
      title="Companies"
      actions={
        <Button onClick={() => setCreating(true)} leftSection={<Icon name="plus" size={14} />}>
          New company
        </Button>
      }
    >
      <QueryView query={companies} what="the companies">
        {(list) => (
          <Paper withBorder>
            <ScrollTable label="Table of companies" minWidth={640}>
              <Table verticalSpacing="xs">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Company</Table.Th>
                    <Table.Th ta="right">Users</Table.Th>
                    <Table.Th ta="right">E-mail credits</Table.Th>
                    <Table.Th>API access</Table.Th>
                    <Table.Th>Active</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {list.map((c) => (
                    <Row key={c._id} c={c} onTopUp={() => setTopUp(c)} />
                  ))}
                </Table.Tbody>
              </Table>
            </ScrollTable>
          </Paper>
        )}
      </QueryView>
      {creating && <NewCompany onClose={() => setCreating(false)} onMade={setMade} />}
      {topUp && <TopUp c={topUp} onClose={() => setTopUp(null)} />}
      <SecretOnce title="The credentials of the new company" secrets={made} onClose={() => setMade(null)} />
    </SettingsPage>
  )
}

function Row({ c, onTopUp }: { c: Company; onTopUp: () => void }) {
  const own = useSession().data?.account_id === c.account_id
  const confirm = useConfirm()
  const [act, busy] = useAct('companies')
  const change = (body: { active?: boolean; api_access?: boolean }) => act(`${c.name} was not changed`, () => data(api.PATCH('/console/api/v1/companies/{id}', { params: { path: { id: c._id } }, body })))
  const setActive = async (on: boolean) => {
    if (on || (await confirm({ title: `Deactivate ${c.name}?`, body: 'Its users cannot sign in, its events are refused and nothing is sent until it is active again.', yes: 'Deactivate', danger: true }))) await change({ active: on })
  }
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {c.name}
          {own && ' (yours)'}
        </Text>
        <Text size="xs" c="dimmed">
          {c.account_id}, since {date(c.created_at)}
        </Text>
      </Table.Td>
      <Table.Td ta="right">{count(c.users)}</Table.Td>
      <Table.Td ta="right">
        <Group gap="xs" justify="flex-end" wrap="nowrap">
          {count(c.email_credits)}
          <Button size="compact-xs" variant="default" onClick={onTopUp} aria-label={`Top up ${c.name}`}>
            Top up
          </Button>
        </Group>
      </Table.Td>
      <Table.Td>
        <Switch checked={c.api_access} disabled={busy} onChange={(e) => void change({ api_access: e.currentTarget.checked })} aria-label={`API access of ${c.name}`} />
      </Table.Td>
      <Table.Td>
        <Switch checked={c.active} disabled={busy || own} onChange={(e) => void setActive(e.currentTarget.checked)} aria-label={`${c.name} is active`} />
      </Table.Td>
    </Table.Tr>
  )
}

function NewCompany({ onClose, onMade }: { onClose: () => void; onMade: (s: { label: string; value: string }[]) => void }) {
  const [name, setName] = useState('')
  const [email, setEmail] = useState('')
  const [act, busy] = useAct('companies')
  const make = async () => {
    const c = await act('The company was not made', () => data(api.POST('/console/api/v1/companies', { body: { name: name.trim(), email: email.trim() } })))
    if (!c) return
    onClose()
    onMade([
      { label: 'E-mail of its first user', value: c.console_email },
      { label: 'Password', value: c.console_password },
      { label: 'App ID', value: c.app_id },
      { label: 'App Secret', value: c.app_secret },
      { label: 'API key', value: c.api_key },
    ])
  }
  return (
    <Modal opened onClose={onClose} title="New company">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void make()
        }}
      >
        <Stack>
          <TextInput label="Name" required value={name} onChange={(e) => setName(e.currentTarget.value)} data-autofocus />
          <TextInput label="E-mail of its first user" type="email" required value={email} onChange={(e) => setEmail(e.currentTarget.value)} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy}>
              Make the company
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

function TopUp({ c, onClose }: { c: Company; onClose: () => void }) {
  const [amount, setAmount] = useState<number | string>(10_000)
  const [act, busy] = useAct('companies', 'credits')
  return (
    <Modal opened onClose={onClose} title={`Top up ${c.name}`}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void act('It was not topped up', () => data(api.POST('/console/api/v1/companies/{id}/credits', { params: { path: { id: c._id } }, body: { amount: Number(amount) } })), `${c.name} has more credits.`).then((a) => a && onClose())
        }}
      >
        <Stack>
          <NumberInput label="E-mail credits to add" value={amount} onChange={setAmount} min={1} allowDecimal={false} thousandSeparator="," data-autofocus />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy} disabled={Number(amount) < 1}>
              Top up
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
