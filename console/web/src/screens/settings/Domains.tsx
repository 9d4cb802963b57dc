import { Badge, Button, Code, Group, Paper, Stack, Table, Text, TextInput, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, whole, type Schemas } from '@/shared/api/client'
import { useMay, useSession } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { CopyButton } from '@/shared/CopyButton'
import { date } from '@/shared/format'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, QueryView } from '@/shared/states'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

type Domain = Schemas['SenderDomain']

/** /settings/domains: the domains that mail is sent from, and what DNS must say of them. */
export function Domains() {
  const may = useMay()
  const domains = useQuery({ queryKey: ['sender-domains'], queryFn: () => data(api.GET('/console/api/v1/sender-domains')), enabled: may('settings:read') })
  const [name, setName] = useState('')
  const [act, busy] = useAct('sender-domains')
  return (
    <SettingsPage section="/settings/domains" title="Sender domains">
      <Stack gap="md">
        {may('settings:write') && (
          <form
            onSubmit={(e) => {
              e.preventDefault()
              void act('The domain was not added', () => data(api.POST('/console/api/v1/sender-domains', { body: { domain: name.trim() } }))).then((d) => d && setName(''))
            }}
          >
            <Group align="flex-end">
              <TextInput label="Domain" placeholder="news.example.com" value={name} onChange={(e) => setName(e.currentTarget.value)} flex="1 1 200px" maw={360} />
              <Button type="submit" loading={busy} disabled={name.trim() === ''}>
                Add the domain
              </Button>
            </Group>
          </form>
        )}
        <QueryView query={domains} what="the domains">
          {(list) =>
            list.length === 0 ? (
              <Empty icon="mail" title="There is no sender domain">
                Add the domain that your e-mails come from. You then publish a few records in its DNS, and have them checked here.
              </Empty>
            ) : (
              list.map((d) => <DomainCard key={d.domain} d={d} />)
            )
          }
        </QueryView>
      </Stack>
    </SettingsPage>
  )
}

function DomainCard({ d }: { d: Domain }) {
  const may = useMay()
  const admin = useSession().data?.admin ?? false
  const confirm = useConfirm()
  const [act, busy] = useAct('sender-domains')
  const [checked, setChecked] = useState<{ domain: Domain; message: string } | null>(null)
  const shown = checked?.domain ?? d
  const path = { params: { path: { id: d.domain } } }
  const verify = async (force: boolean) => {
    const answer = await act('DNS was not asked', () => whole(api.POST('/console/api/v1/sender-domains/{id}/verify', { ...path, body: { force } })))
    if (answer) setChecked({ domain: answer.data, message: answer.message })
  }
  const remove = async () => {
    const uses = await act('It was not found out where the domain is used', () => data(api.GET('/console/api/v1/sender-domains/{id}/used-in', path)))
    if (!uses) return
    const used = uses.length > 0 ? `It is the sender of ${uses.map((u) => `${u.kind} ${u.name}`).join(', ')}. ` : ''
    if (await confirm({ title: `Remove ${d.domain}?`, body: `${used}Mail from it is not signed any more.`, yes: 'Remove', danger: true })) await act('The domain was not removed', () => data(api.DELETE('/console/api/v1/sender-domains/{id}', path)), `${d.domain} is removed.`)
  }
  return (
    <Paper withBorder p="md" component="section" aria-label={d.domain}>
      <Group justify="space-between" mb="xs">
        <Group gap="sm">
          <Title order={3} size="h5">
            {d.domain}
          </Title>
          <Badge color={shown.verified ? 'teal.9' : 'gray.7'} variant="filled" tt="none">
            {shown.verified ? 'verified' : 'not verified'}
          </Badge>
          {shown.verified_at && (
            <Text size="xs" c="dimmed">
              {date(shown.verified_at)}
              {shown.verified_by === 'administrator' ? ', by an administrator' : ''}
            </Text>
          )}
        </Group>
        {may('settings:write') && (
          <Group gap="xs">
            <Button size="xs" loading={busy} onClick={() => void verify(false)}>
              Check DNS
            </Button>
            {admin && !shown.verified && (
              <Button size="xs" variant="default" onClick={() => void confirm({ title: 'Count it as verified?', body: 'Without the records in DNS mailbox providers distrust its mail.', yes: 'Count as verified', danger: true }).then((y) => (y ? verify(true) : undefined))}>
                Count as verified
              </Button>
            )}
            <Button size="xs" variant="default" onClick={() => void remove()}>
              Remove
            </Button>
          </Group>
        )}
      </Group>
      {checked && !checked.domain.verified && (
        <Text size="sm" role="status" mb="xs">
          {checked.message || 'Some records are missing or wrong.'} DNS may take some hours to tell a change everywhere.
        </Text>
      )}
      <ScrollTable label="Table of DNS records" minWidth={560}>
        <Table verticalSpacing="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Type</Table.Th>
              <Table.Th>Name and value</Table.Th>
              <Table.Th>What for</Table.Th>
              <Table.Th>State</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.records.map((r) => (
              <Table.Tr key={r.type + r.name + r.value}>
                <Table.Td valign="top">{r.type}</Table.Td>
                <Table.Td maw={420}>
                  <Copied text={r.name} what="name" />
                  <Copied text={r.value} what="value" />
                </Table.Td>
                <Table.Td valign="top">
                  <Text size="sm">{r.purpose}</Text>
                  {!r.required && (
                    <Text size="xs" c="dimmed">
                      not required
                    </Text>
                  )}
                </Table.Td>
                <Table.Td valign="top">
                  {r.ok === undefined ? (
                    <Text size="xs" c="dimmed">
                      not checked
                    </Text>
                  ) : (
                    <Badge color={r.ok ? 'teal.9' : 'red.9'} variant="filled" tt="none">
                      {r.ok ? 'found' : 'missing or wrong'}
                    </Badge>
                  )}
                  {r.problem && <Text size="xs">{r.problem}</Text>}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollTable>
    </Paper>
  )
}

function Copied({ text, what }: { text: string; what: string }) {
  return (
    <Group gap="xs" wrap="nowrap" mb={4}>
      <Code style={{ overflowWrap: 'anywhere', minWidth: 0, maxHeight: 64, overflow: 'auto' }} tabIndex={0}>
        {text}
      </Code>
      <CopyButton value={text} label={`Copy the ${what}`} size="compact-xs" style={{ flex: 'none' }} />
    </Group>
  )
}
