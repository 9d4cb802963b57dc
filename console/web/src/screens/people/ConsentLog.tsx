import { Anchor, Box, Group, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { instant } from '@/shared/format'
import { QueryView } from '@/shared/states'
import { channelTitle } from './words'

type Entry = Schemas['ConsentEntry']

/** What shows that a person said something, as far as it is known. */
const evidenceOf = (e: Entry) =>
  [e.source && `from ${e.source}`, e.campaign_id && `campaign ${e.campaign_id}`, e.flow_id && `flow ${e.flow_id}${e.step_id ? `, step ${e.step_id}` : ''}`, e.message_id && `message ${e.message_id}`, e.client && `network ${e.client}`].filter(Boolean).join(' · ')

/** The log of consents of a person, and the page on which the person chooses. */
export function ConsentLog({ id }: { id: string }) {
  const writes = useMay()('contacts:write')
  const log = useQuery({ queryKey: ['person', id, 'consent-log'], queryFn: ({ signal }) => data(api.GET('/console/api/v1/profiles/{id}/consents', { params: { path: { id } }, signal })) })
  const link = useQuery({ queryKey: ['person', id, 'preferences-link'], queryFn: () => data(api.GET('/console/api/v1/profiles/{id}/preferences-link', { params: { path: { id } } })), enabled: writes })
  return (
    <Box component="section" aria-label="Log of consents">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4">
          Log of consents
        </Title>
        {link.data && (
          <Anchor size="sm" href={link.data.url} target="_blank" rel="noreferrer">
            Open the preference page
          </Anchor>
        )}
      </Group>
      <QueryView query={log} what="the log of consents">
        {(list) =>
          list.length === 0 ? (
            <Text size="sm" c="dimmed">
              Nothing was said of a channel or a topic.
            </Text>
          ) : (
            <Stack gap={6}>
              {list.map((e, i) => (
                <Group key={i} gap="sm" wrap="nowrap" align="baseline" data-testid="consent-log-entry">
                  <Text size="xs" c="dimmed" className="numbers" w={{ base: 120, sm: 190 }} style={{ flex: 'none' }}>
                    {instant(e.at)}
                  </Text>
                  <Box miw={0}>
                    <Text size="sm">
                      {e.channel ? channelTitle(e.channel) : `Topic ${e.topic ?? e.list_id}`}: {e.status}
                    </Text>
                    <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
                      {evidenceOf(e)}
                    </Text>
                    {e.wording && (
                      <Text size="xs" c="dimmed" style={{ whiteSpace: 'pre-line', overflowWrap: 'anywhere' }}>
                        Read: “{e.wording}”
                      </Text>
                    )}
                  </Box>
                </Group>
              ))}
            </Stack>
          )
        }
      </QueryView>
    </Box>
  )
}
