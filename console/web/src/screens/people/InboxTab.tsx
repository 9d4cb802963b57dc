import { Badge, Group, Paper, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, data } from '@/shared/api/client'
import { instant } from '@/shared/format'
import { AnchorLink } from '@/shared/links'
import { Empty, QueryView } from '@/shared/states'

/** The in-app messages of a person, as pages show them. */
export function InboxTab({ id }: { id: string }) {
  const inbox = useQuery({ queryKey: ['person', id, 'inbox'], queryFn: ({ signal }) => data(api.GET('/console/api/v1/profiles/{id}/inbox', { params: { path: { id } }, signal })) })
  return (
    <QueryView query={inbox} what="the inbox">
      {(list) =>
        list.length === 0 ? (
          <Empty icon="mail" title="The inbox is empty">
            In-app messages of campaigns and flows stand here until they end.
          </Empty>
        ) : (
          <Stack gap="sm">
            {list.map((m) => (
              <Paper key={m.id} withBorder p="sm" data-testid="inbox-message">
                <Group justify="space-between" align="flex-start" wrap="nowrap">
                  <Text fw={600} style={{ overflowWrap: 'anywhere' }}>
                    {m.title}
                  </Text>
                  <Badge variant="light" color={m.dismissed_at ? 'gray' : m.seen_at ? 'teal' : 'indigo'} c="var(--mantine-color-text)" style={{ flex: 'none' }}>
                    {m.dismissed_at ? 'dismissed' : m.clicked_at ? 'clicked' : m.seen_at ? 'seen' : 'unseen'}
                  </Badge>
                </Group>
                {m.body && (
                  <Text size="sm" style={{ whiteSpace: 'pre-line', overflowWrap: 'anywhere' }}>
                    {m.body}
                  </Text>
                )}
                <Group gap="xs">
                  <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
                    {[m.link, `sent ${instant(m.created_at)}`, `ends ${instant(m.expires_at)}`].filter(Boolean).join(' · ')}
                  </Text>
                  {m.campaign_id && (
                    <AnchorLink to="/campaigns/$id" params={{ id: m.campaign_id }} size="xs">
                      Campaign
                    </AnchorLink>
                  )}
                  {m.flow_id && (
                    <AnchorLink to="/flows/$id" params={{ id: m.flow_id }} size="xs">
                      Flow, step {m.step_id}
                    </AnchorLink>
                  )}
                </Group>
              </Paper>
            ))}
          </Stack>
        )
      }
    </QueryView>
  )
}
