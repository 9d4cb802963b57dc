import { Box, Button, Group, Paper, Stack, Table, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, whole } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { date, instant } from '@/shared/format'
import { ScrollTable } from '@/shared/ScrollTable'
import { QueryView } from '@/shared/states'
import { ConsentLog } from './ConsentLog'
import { StatusText } from './StatusText'
import { wordsOf } from './timelineWords'
import type { Acts } from './useActs'
import { channels } from '@/shared/peopleSearch'
import type { Person } from './usePeople'
import { channelName, channelTitle } from './words'

const consentWords = { subscribed: 'Subscribed', unsubscribed: 'Unsubscribed', never_subscribed: 'Never subscribed' } as const

/** Consents and suppressions by channel, with their history and what can be done. */
export function ConsentTab({ person, acts }: { person: Person; acts: Acts }) {
  const may = useMay()
  const writes = may('contacts:write')
  const history = useQuery({
    queryKey: ['person', person.profile_id, 'consents'],
    queryFn: ({ signal }) => whole(api.GET('/console/api/v1/profiles/{id}/timeline', { params: { path: { id: person.profile_id }, query: { kinds: 'consent,suppression', limit: 200 } }, signal })),
    enabled: may('events:read'),
  })
  return (
    <Stack gap="lg">
      <Paper withBorder>
        <ScrollTable label="Table of channels" minWidth={560}>
          <Table verticalSpacing={6} aria-label="Consents by channel">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Channel</Table.Th>
                <Table.Th>Status</Table.Th>
                <Table.Th>Consent</Table.Th>
                <Table.Th>Blocked</Table.Th>
                {writes && <Table.Th w={1} aria-label="Actions" />}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {channels.map((c) => {
                const consent = person.consent[c]!
                const block = person.suppressions[c]
                const name = channelName(c)
                return (
                  <Table.Tr key={c}>
                    <Table.Th scope="row" fw={500}>
                      {channelTitle(c)}
                    </Table.Th>
                    <Table.Td>
                      <StatusText status={person.statuses[c]} />
                    </Table.Td>
                    <Table.Td>
                      <Text size="sm">{consentWords[consent.status]}</Text>
                      {consent.since && (
                        <Text size="xs" c="dimmed" title={instant(consent.since)}>
                          {date(consent.since)}
                          {consent.source && `, ${consent.source}`}
                        </Text>
                      )}
                    </Table.Td>
                    <Table.Td>
                      <Text size="sm" c={block ? undefined : 'dimmed'}>
                        {block ?? 'no'}
                      </Text>
                    </Table.Td>
                    {writes && (
                      <Table.Td>
                        <Group gap="xs" wrap="nowrap" justify="flex-end">
                          {consent.status === 'subscribed' ? (
                            <Button size="compact-xs" variant="default" onClick={() => void acts.unsubscribe(c)} aria-label={`Unsubscribe from ${name}`}>
                              Unsubscribe
                            </Button>
                          ) : (
                            <Button size="compact-xs" variant="default" onClick={() => void acts.subscribe(c)} aria-label={`Subscribe to ${name}`}>
                              Subscribe
                            </Button>
                          )}
                          {block ? (
                            <Button size="compact-xs" variant="default" onClick={() => void acts.unsuppress(c)} aria-label={`Lift the block of ${name}`}>
                              Lift the block
                            </Button>
                          ) : (
                            <Button size="compact-xs" variant="default" onClick={() => void acts.suppress(c)} aria-label={`Block ${name}`}>
                              Block
                            </Button>
                          )}
                        </Group>
                      </Table.Td>
                    )}
                  </Table.Tr>
                )
              })}
            </Table.Tbody>
          </Table>
        </ScrollTable>
      </Paper>
      <ConsentLog id={person.profile_id} />
      {may('events:read') && (
        <Box component="section" aria-label="History of consents">
          <Title order={2} size="h4" mb="xs">
            History
          </Title>
          <QueryView query={history} what="the history of consents">
            {({ data, next }) =>
              data.length === 0 ? (
                <Text size="sm" c="dimmed">
                  No consent and no block was recorded.
                </Text>
              ) : (
                <Stack gap={4}>
                  {data.map((e, i) => {
                    const { title, detail } = wordsOf(e)
                    return (
                      <Group key={i} gap="sm" wrap="nowrap" align="baseline" data-testid="consent-entry">
                        <Text size="xs" c="dimmed" className="numbers" w={{ base: 120, sm: 190 }} style={{ flex: 'none' }}>
                          {instant(e.at)}
                        </Text>
                        <Text size="sm">
                          {title}
                          {detail && (
                            <Text span size="xs" c="dimmed">
                              {' '}
                              {detail}
                            </Text>
                          )}
                        </Text>
                      </Group>
                    )
                  })}
                  {next && (
                    <Text size="xs" c="dimmed">
                      Earlier ones are in the timeline.
                    </Text>
                  )}
                </Stack>
              )
            }
          </QueryView>
        </Box>
      )}
    </Stack>
  )
}
