import { Box, Group, Paper, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, type ReactNode } from 'react'
import { useMay } from '@/shared/api/session'
import type { Schemas } from '@/shared/api/client'
import { AsOf } from '@/shared/AsOf'
import { useCaptured } from '@/shared/captured'
import { deliveriesOf, notReported } from '@/shared/deliveries'
import { count, percent } from '@/shared/format'
import { Plot } from '@/shared/Plot'
import { ScreenLink } from '@/shared/ScreenLink'
import { ScrollTable } from '@/shared/ScrollTable'
import { NoPermission, QueryView } from '@/shared/states'
import { useRefresh } from '@/shared/useRefresh'
import { sinceDays, useEventVolumes, useOverview } from './useOverview'
import { stacked } from './volumes'

/** People, events and messages of the last days. */
export function Overview({ days }: { days: number }) {
  const may = useMay()
  const overview = useOverview(days)
  const events = useEventVolumes(days)
  const client = useQueryClient()
  const captured = useCaptured('email')
  useRefresh(may('events:read') ? '/console/api/v1/events/live?outcome=accepted' : null, () => void client.invalidateQueries({ queryKey: ['analytics'] }), 5000)
  const by = sinceDays(days).granularity
  const plot = useMemo(() => (events.data ? stacked(events.data.events, events.data.range, by) : undefined), [events.data, by])
  const channels = overview.data ? (Object.entries(overview.data.channels) as [string, Schemas['MessageCounts']][]).filter(([, c]) => c.sent > 0) : []
  if (!may('analytics:read')) return <NoPermission permission="analytics:read" />
  const span = days === 1 ? 'the last 24 hours' : `the last ${days} days`
  return (
    <Stack gap="md">
      <QueryView query={overview} what="the numbers">
        {(o) => (
          <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
            <Tile label="People" value={o.contacts.total} note={`${count(o.contacts.new)} new in ${span}`} at={overview.dataUpdatedAt} />
            <Tile label="Events" value={o.events} note={`in ${span}`} at={overview.dataUpdatedAt} />
            <Tile label="Segments" value={o.segments} note={<ScreenLink to="/segments" size="xs">all segments</ScreenLink>} at={overview.dataUpdatedAt} />
            <Tile label="E-mails sent" value={o.messages.sent} note={o.messages.sent === 0 ? `none in ${span}` : captured ? <>kept by the server: it has no mail relay. <ScreenLink to="/unsent" search={{ channel: 'email' }} size="xs" underline="always">See them</ScreenLink></> : deliveriesOf(o.messages) === null ? `deliveries ${notReported}` : `${percent(o.messages.delivery_rate)} delivered`} at={overview.dataUpdatedAt} />
          </SimpleGrid>
        )}
      </QueryView>
      <Paper withBorder p="md" component="section" aria-labelledby="volumes">
        <Group justify="space-between" mb="xs">
          <Title order={2} size="h5" id="volumes">
            Events by type
          </Title>
          {events.dataUpdatedAt > 0 && <AsOf at={new Date(events.dataUpdatedAt).toISOString()} />}
        </Group>
        <QueryView query={events} what="the volumes">
          {(e) =>
            e.events.length === 0 ? (
              <Text size="sm" c="dimmed">
                No event in {span}. Choose a longer time, or <ScreenLink to="/live" size="sm">watch what arrives</ScreenLink>.
              </Text>
            ) : (
              <Stack gap="sm">
                {plot && <Plot {...plot} spans label={`Events in ${span} by type and ${by}`} height={220} />}
                <ScrollTable label="Table of events by type" minWidth={300}>
                  <Table verticalSpacing={4}>
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Event type</Table.Th>
                        <Table.Th ta="right">Events</Table.Th>
                        <Table.Th ta="right">People</Table.Th>
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {[...e.events].sort((a, b) => b.events - a.events).slice(0, 8).map((t) => (
                        <Table.Tr key={t.event_type}>
                          <Table.Td>
                            <ScreenLink to="/catalogue/$key" params={{ key: t.event_type }} size="sm">
                              {t.event_type}
                            </ScreenLink>
                          </Table.Td>
                          <Table.Td ta="right" className="numbers">
                            {count(t.events)}
                          </Table.Td>
                          <Table.Td ta="right" className="numbers">
                            {count(t.contacts)}
                          </Table.Td>
                        </Table.Tr>
                      ))}
                    </Table.Tbody>
                  </Table>
                </ScrollTable>
                {e.events.length > 8 && (
                  <Text size="xs">
                    <ScreenLink to="/catalogue" size="xs">
                      All {count(e.events.length)} types
                    </ScreenLink>
                  </Text>
                )}
              </Stack>
            )
          }
        </QueryView>
      </Paper>
      {channels.length > 0 && (
        <Paper withBorder p="md" component="section" aria-labelledby="messages">
          <Group justify="space-between" mb="xs">
            <Title order={2} size="h5" id="messages">
              Messages
            </Title>
            <AsOf at={new Date(overview.dataUpdatedAt).toISOString()} />
          </Group>
          <ScrollTable label="Table of messages by channel" minWidth={420}>
            <Table verticalSpacing={4}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Channel</Table.Th>
                  <Table.Th ta="right">Sent</Table.Th>
                  <Table.Th ta="right">Delivered</Table.Th>
                  <Table.Th ta="right">Bounced</Table.Th>
                  <Table.Th ta="right">Complaints</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {channels.map(([name, c]) => (
                  <Table.Tr key={name}>
                    <Table.Td>{{ email: 'E-mail', sms: 'SMS', whatsapp: 'WhatsApp', im: 'Instant messages', push: 'Push' }[name] ?? name}</Table.Td>
                    <Table.Td ta="right" className="numbers">{count(c.sent)}</Table.Td>
                    <Table.Td ta="right" className="numbers">{deliveriesOf(c) === null ? notReported : percent(c.delivery_rate)}</Table.Td>
                    <Table.Td ta="right" className="numbers">{percent(c.bounce_rate)}</Table.Td>
                    <Table.Td ta="right" className="numbers">{percent(c.complaint_rate)}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollTable>
        </Paper>
      )}
    </Stack>
  )
}

function Tile({ label, value, note, at }: { label: string; value: number; note: ReactNode; at: number }) {
  return (
    <Paper withBorder p="sm">
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text size="xl" fw={600} className="numbers" data-testid={`tile-${label}`}>
        {count(value)}
      </Text>
      <Text size="xs" c="dimmed" component="div">
        {note}
      </Text>
      <Box mt={2}>
        <AsOf at={new Date(at).toISOString()} />
      </Box>
    </Paper>
  )
}
