import { ActionIcon, Alert, Box, Button, Code, Group, Paper, Stack, Table, Text, TextInput, Title } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, data, whole } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { date, instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import type { Person } from './usePeople'

const kindLabels = { email: 'E-mail', external_id: 'External id', phone: 'Phone' } as const
const conflictLabels = { ...kindLabels, anonymous_id: 'Anonymous id' } as const

/** Who the person is: identifiers, merges, conflicts, geo and attributes. */
export function ProfileTab({ person }: { person: Person }) {
  return (
    <Stack gap="lg">
      <Identifiers person={person} />
      <Fields person={person} field="attributes" title="Attributes" about="Attributes are your own; segments can ask for them." />
      <Fields person={person} field="geo" title="Place" about="Where the person is, as events and imports told it." />
      <Devices person={person} />
    </Stack>
  )
}

function Identifiers({ person }: { person: Person }) {
  const may = useMay()
  const merges = useQuery({
    queryKey: ['person', person.profile_id, 'merges'],
    queryFn: ({ signal }) => whole(api.GET('/console/api/v1/profiles/{id}/timeline', { params: { path: { id: person.profile_id }, query: { kinds: 'merge', limit: 1000 } }, signal })),
    enabled: may('events:read') && person.merged_ids.length > 0,
  })
  const when = new Map(merges.data?.data.map((e) => [e.merge?.profile_id, e.at]))
  return (
    <Box component="section" aria-label="Identifiers">
      <Title order={2} size="h4" mb="xs">
        Identifiers
      </Title>
      <Paper withBorder>
        <Table verticalSpacing={6}>
          <Table.Tbody>
            {(Object.keys(kindLabels) as (keyof typeof kindLabels)[]).map((k) => (
              <Table.Tr key={k}>
                <Table.Th scope="row" w={140} fw={500}>
                  {kindLabels[k]}
                </Table.Th>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>
                  {person.identities[k].length === 0 ? (
                    <Text size="sm" c="dimmed">
                      none
                    </Text>
                  ) : (
                    person.identities[k].map((v) => (
                      <Text key={v} size="sm">
                        {v}
                      </Text>
                    ))
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
            {person.anonymous_ids.length > 0 && (
              <Table.Tr>
                <Table.Th scope="row" fw={500} style={{ verticalAlign: 'top' }}>
                  Anonymous ids
                </Table.Th>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>
                  {person.anonymous_ids.map((v) => (
                    <Text key={v} size="sm" ff="monospace" data-testid="anonymous">
                      {v}
                    </Text>
                  ))}
                  <Text size="xs" c="dimmed">
                    Devices that an SDK saw before it knew whose they are. The timeline has what was done on them.
                  </Text>
                </Table.Td>
              </Table.Tr>
            )}
            <Table.Tr>
              <Table.Th scope="row" fw={500}>
                Profile id
              </Table.Th>
              <Table.Td style={{ overflowWrap: 'anywhere' }}>
                <Text size="sm" ff="monospace">
                  {person.profile_id}
                </Text>
              </Table.Td>
            </Table.Tr>
            <Table.Tr>
              <Table.Th scope="row" fw={500} style={{ verticalAlign: 'top' }}>
                Merges
              </Table.Th>
              <Table.Td style={{ overflowWrap: 'anywhere' }}>
                {person.merged_ids.length === 0 ? (
                  <Text size="sm" c="dimmed">
                    No other profile became part of this one.
                  </Text>
                ) : (
                  person.merged_ids.map((id) => (
                    <Group key={id} gap="xs" data-testid="merged">
                      <Text size="sm" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                        {id}
                      </Text>
                      <Text size="xs" c="dimmed">
                        {when.has(id) ? instant(when.get(id)!) : ''}
                      </Text>
                    </Group>
                  ))
                )}
              </Table.Td>
            </Table.Tr>
          </Table.Tbody>
        </Table>
      </Paper>
      {person.conflicts.length > 0 && (
        <Alert mt="sm" color="yellow" variant="light" icon={<Icon name="alert" />} title={<Text span inherit c="var(--mantine-color-text)">Identifiers that belong to somebody else</Text>}>
          <Stack gap={6}>
            {person.conflicts.map((c, i) => (
              <Text key={i} size="sm" component="div" data-testid="conflict">
                {conflictLabels[c.kind]} <b style={{ overflowWrap: 'anywhere' }}>{c.value}</b>: {c.reason} ({instant(c.at)}){' '}
                {c.other_profile_id && (
                  <AnchorLink to="/people/$id" params={{ id: c.other_profile_id }} size="sm" c="inherit" td="underline">
                    The other person
                  </AnchorLink>
                )}
              </Text>
            ))}
          </Stack>
        </Alert>
      )}
    </Box>
  )
}

/** Text that reads as JSON is taken as such: 3 is a number, true is true. */
function typed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function Fields({ person, field, title, about }: { person: Person; field: 'attributes' | 'geo'; title: string; about: string }) {
  const [key, setKey] = useState('')
  const [value, setValue] = useState('')
  const [busy, setBusy] = useState(false)
  const may = useMay()
  const confirm = useConfirm()
  const client = useQueryClient()
  const entries = Object.entries(person[field])
  const writes = may('contacts:write')
  const set = async (change: Record<string, unknown>) => {
    setBusy(true)
    try {
      await data(api.PATCH('/console/api/v1/profiles/{id}', { params: { path: { id: person.profile_id } }, body: { [field]: change } }))
      await client.invalidateQueries({ queryKey: ['person', person.profile_id] })
      return true
    } catch (e) {
      notifications.show({ color: 'red', title: 'Nothing was changed', message: messageOf(e) })
      return false
    } finally {
      setBusy(false)
    }
  }
  const submit = async (e: FormEvent) => {
    e.preventDefault()
    if (key.trim() && (await set({ [key.trim()]: typed(value) }))) {
      setKey('')
      setValue('')
    }
  }
  const remove = async (k: string) => {
    if (await confirm({ title: `Remove ${k}?`, body: 'Its value is deleted. Segments that use it are re-evaluated for this person.', yes: 'Remove', danger: true })) await set({ [k]: null })
  }
  return (
    <Box component="section" aria-label={title}>
      <Title order={2} size="h4" mb="xs">
        {title}
      </Title>
      {entries.length === 0 ? (
        <Text size="sm" c="dimmed">
          Nothing is known. {about}
        </Text>
      ) : (
        <Paper withBorder>
          <Table verticalSpacing={4}>
            <Table.Tbody>
              {entries.map(([k, v]) => (
                <Table.Tr key={k}>
                  <Table.Th scope="row" w={140} fw={500} style={{ overflowWrap: 'anywhere' }}>
                    {k}
                  </Table.Th>
                  <Table.Td style={{ overflowWrap: 'anywhere' }}>{typeof v === 'string' ? <Text size="sm">{v}</Text> : <Code>{JSON.stringify(v)}</Code>}</Table.Td>
                  {writes && (
                    <Table.Td w={80}>
                      <Group gap={0} wrap="nowrap" justify="flex-end">
                        <ActionIcon variant="subtle" color="gray" aria-label={`Change ${k}`} onClick={() => (setKey(k), setValue(typeof v === 'string' ? v : JSON.stringify(v)))}>
                          <Icon name="edit" size={14} />
                        </ActionIcon>
                        <ActionIcon variant="subtle" color="gray" aria-label={`Remove ${k}`} onClick={() => void remove(k)}>
                          <Icon name="trash" size={14} />
                        </ActionIcon>
                      </Group>
                    </Table.Td>
                  )}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Paper>
      )}
      {writes && (
        <form onSubmit={(e) => void submit(e)}>
          <Group gap="xs" mt="xs" align="flex-end">
            <TextInput label="Name" value={key} onChange={(e) => setKey(e.currentTarget.value)} w={160} autoComplete="off" />
            <TextInput label="Value: text, number, or JSON" value={value} onChange={(e) => setValue(e.currentTarget.value)} flex="1 1 160px" maw={360} autoComplete="off" />
            <Button type="submit" variant="default" loading={busy} disabled={!key.trim()}>
              {key.trim() in person[field] ? 'Change' : 'Add'}
            </Button>
          </Group>
        </form>
      )}
    </Box>
  )
}

function Devices({ person }: { person: Person }) {
  const devices = useQuery({
    queryKey: ['person', person.profile_id, 'devices'],
    queryFn: ({ signal }) => data(api.GET('/console/api/v1/profiles/{id}/devices', { params: { path: { id: person.profile_id } }, signal })),
    enabled: person.devices > 0,
  })
  return (
    <Box component="section" aria-label="Devices">
      <Title order={2} size="h4" mb="xs">
        Devices
      </Title>
      {person.devices === 0 && (
        <Text size="sm" c="dimmed">
          No device is registered, so that no push message can be sent.
        </Text>
      )}
      {devices.data?.map((d) => (
        <Text key={d._id} size="sm">
          {d.kind}, since {date(d.created_at)}{' '}
          <Text span size="xs" c="dimmed" ff="monospace">
            {d._id}
          </Text>
        </Text>
      ))}
    </Box>
  )
}
