import { Badge, Button, Group, Modal, Paper, Stack, Switch, Table, Tabs, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { ago, count, date, instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { Fields } from './Fields'

const route = getRouteApi('/shell/catalogue')

/** /catalogue: the types of events and the attributes of people that there are. */
export function Catalogue() {
  const { q = '', tab = 'events', open, hidden = false } = route.useSearch()
  const navigate = route.useNavigate()
  const may = useMay()
  const types = useQuery({ queryKey: ['catalog'], queryFn: () => data(api.GET('/console/api/v1/catalog')), enabled: may('events:read') })
  const attributes = useQuery({ queryKey: ['attributes'], queryFn: () => data(api.GET('/console/api/v1/attributes')), enabled: may('contacts:read') && tab === 'attributes' })
  const [defining, setDefining] = useState(false)
  const at = tab === 'events' ? types.dataUpdatedAt : attributes.dataUpdatedAt
  const find = <TextInput mb="sm" maw={360} placeholder="Name" aria-label={tab === 'events' ? 'Find an event type' : 'Find an attribute'} value={q} onChange={(e) => void navigate({ search: (s) => ({ ...s, q: e.currentTarget.value || undefined }), replace: true })} leftSection={<Icon name="search" size={14} />} />
  return (
    <Page
      title="Catalogue"
      aside={at > 0 && <AsOf at={new Date(at).toISOString()} />}
      actions={
        may('events:write') && (
          <Button onClick={() => setDefining(true)} leftSection={<Icon name="plus" size={14} />}>
            Define an event type
          </Button>
        )
      }
    >
      <Tabs value={tab} onChange={(v) => void navigate({ search: { tab: v === 'attributes' ? 'attributes' : undefined }, replace: true })} keepMounted={false}>
        <Tabs.List mb="sm">
          <Tabs.Tab value="events">Events</Tabs.Tab>
          <Tabs.Tab value="attributes">Attributes of people</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="events">
          {!may('events:read') ? (
            <NoPermission permission="events:read" />
          ) : (
            <QueryView query={types} what="the catalogue">
              {(all) => {
                if (all.length === 0)
                  return (
                    <Empty icon="database" title="No event has come yet">
                      Types of events show here by themselves, with their properties. <AnchorLink to="/home" size="sm" underline="always">Send the first event</AnchorLink>
                    </Empty>
                  )
                const found = all.filter((t) => `${t.name} ${t.key} ${t.description}`.toLowerCase().includes(q.toLowerCase())).sort((a, b) => b.count - a.count)
                const shown = hidden ? found : found.filter((t) => !t.hidden)
                const left = found.length - shown.length
                return (
                  <>
                    <Group align="center" gap="md">
                      {find}
                      {all.some((t) => t.hidden) && <Switch mb="sm" label="Show hidden types" checked={hidden} onChange={(e) => void navigate({ search: (s) => ({ ...s, hidden: e.currentTarget.checked || undefined }), replace: true })} />}
                    </Group>
                    <Paper withBorder>
                      <ScrollTable label="Table of event types" minWidth={520}>
                        <Table verticalSpacing="xs" highlightOnHover>
                          <Table.Thead>
                            <Table.Tr>
                              <Table.Th>Event type</Table.Th>
                              <Table.Th ta="right">Events</Table.Th>
                              <Table.Th ta="right">Properties</Table.Th>
                              <Table.Th>First seen</Table.Th>
                              <Table.Th>Last seen</Table.Th>
                            </Table.Tr>
                          </Table.Thead>
                          <Table.Tbody>
                            {shown.map((t) => (
                              <Table.Tr key={t.key}>
                                <Table.Td>
                                  <AnchorLink to="/catalogue/$key" params={{ key: t.key }} size="sm" fw={600}>
                                    {t.key}
                                  </AnchorLink>{' '}
                                  {t.hidden && (
                                    <Badge size="xs" variant="filled" color="gray.7" tt="none">
                                      hidden
                                    </Badge>
                                  )}
                                  {t.name !== t.key && (
                                    <Text size="xs" c="dimmed">
                                      {t.name}
                                    </Text>
                                  )}
                                  {t.description && (
                                    <Text size="xs" c="dimmed" lineClamp={2} maw={480}>
                                      {t.description}
                                    </Text>
                                  )}
                                </Table.Td>
                                <Table.Td ta="right" className="numbers">
                                  {count(t.count)}
                                </Table.Td>
                                <Table.Td ta="right" className="numbers">
                                  {count(t.property_count)}
                                </Table.Td>
                                <Table.Td style={{ whiteSpace: 'nowrap' }}>{t.first_seen ? date(t.first_seen) : 'not yet'}</Table.Td>
                                <Table.Td style={{ whiteSpace: 'nowrap' }} title={t.last_seen ? instant(t.last_seen) : undefined}>
                                  {t.last_seen ? ago(t.last_seen, Date.now()) : t.count > 0 ? 'not known' : 'not yet'}
                                </Table.Td>
                              </Table.Tr>
                            ))}
                          </Table.Tbody>
                        </Table>
                      </ScrollTable>
                    </Paper>
                    {shown.length === 0 && (
                      <Text size="sm" c="dimmed" mt="md">
                        {left > 0 ? `Only hidden types match: ${count(left)}.` : `No event type has “${q}” in its name or its description.`}
                      </Text>
                    )}
                  </>
                )
              }}
            </QueryView>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="attributes">
          {!may('contacts:read') ? (
            <NoPermission permission="contacts:read" />
          ) : (
            <QueryView query={attributes} what="the attributes">
              {(a) =>
                a.attributes.length === 0 ? (
                  <Empty icon="tag" title="No attribute is known">
                    Attributes that events give as user.attributes and user.geo appear here.
                  </Empty>
                ) : (
                  <>
                    {find}
                    <Fields of="updates" fields={a.attributes.filter((f) => f.path.toLowerCase().includes(q.toLowerCase()))} lastSeen={null} open={open} onOpen={(v) => void navigate({ search: (s) => ({ ...s, open: v }), replace: true })} />
                    <Text size="xs" c="dimmed" mt="xs">
                      Shares of attributes are of {count(a.looked_at)} updates of profiles looked at, not of people; shares of types and values are of the updates that have the attribute.
                      {a.more > 0 && ' More attributes were found than can be kept here.'}
                    </Text>
                  </>
                )
              }
            </QueryView>
          )}
        </Tabs.Panel>
      </Tabs>
      {defining && <Define onClose={() => setDefining(false)} />}
    </Page>
  )
}

function Define({ onClose }: { onClose: () => void }) {
  const client = useQueryClient()
  const [name, setName] = useState('')
  const [busy, setBusy] = useState(false)
  const define = async () => {
    setBusy(true)
    try {
      const t = await data(api.POST('/console/api/v1/catalog', { body: { name: name.trim() } }))
      await client.invalidateQueries({ queryKey: ['catalog'] })
      notifications.show({ message: `Programs send it as ${t.key}.` })
      onClose()
    } catch (e) {
      notifications.show({ color: 'red', title: 'It was not defined', message: messageOf(e) })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Modal opened onClose={onClose} title="Define an event type">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void define()
        }}
      >
        <Stack>
          <TextInput label="Name" description="Such as Item purchased. Types need not be defined: one that comes is known by itself." required value={name} onChange={(e) => setName(e.currentTarget.value)} data-autofocus />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy} disabled={name.trim() === ''}>
              Define it
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
