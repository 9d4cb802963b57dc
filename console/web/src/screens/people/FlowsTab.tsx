import { Badge, Box, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { instant } from '@/shared/format'
import { AnchorLink } from '@/shared/links'
import { Empty, Failed, Loading, NoPermission } from '@/shared/states'
import { resultName, stepName } from './timelineWords'
import { useFlows, type Person } from './usePeople'

const statusNames = { in_progress: 'In it now', completed: 'Completed', exited: 'Left early' } as const

/** The flows that the person is or was in: at which step, and until when. */
export function FlowsTab({ person }: { person: Person }) {
  const may = useMay()
  const flows = useFlows()
  const enrolments = useQueries({
    queries: person.flows.map((id) => ({
      queryKey: ['person', person.profile_id, 'flow', id],
      queryFn: () => data(api.GET('/console/api/v1/flows/{id}/enrolments/{profile}', { params: { path: { id, profile: person.profile_id } } })),
      enabled: may('flows:read'),
    })),
  })
  if (!may('flows:read')) return <NoPermission permission="flows:read" />
  if (person.flows.length === 0)
    return (
      <Empty icon="flow" title="This person was in no flow yet">
        A flow enrols people when its trigger happens: an event, an entry into a segment, or a call.
      </Empty>
    )
  return (
    <Stack gap="lg">
      {person.flows.map((id, i) => {
        const q = enrolments[i]!
        return (
          <Box key={id} component="section" aria-label={flows.data?.find((f) => f._id === id)?.name ?? id}>
            <Title order={2} size="h4" mb="xs">
              <AnchorLink to="/flows/$id" params={{ id }} inherit>
                {flows.data?.find((f) => f._id === id)?.name ?? id}
              </AnchorLink>
            </Title>
            {q.isError ? (
              <Failed error={q.error} retry={() => void q.refetch()} />
            ) : !q.data ? (
              <Loading what="the enrolments" />
            ) : (
              <Stack gap="sm">
                {[...q.data.enrolments].reverse().map((e) => (
                  <Paper key={e.number} withBorder p="sm" data-testid="enrolment">
                    <Group gap="sm" mb={6}>
                      <Badge variant="filled" color={e.status === 'in_progress' ? 'cyan.9' : 'gray.7'} tt="none">
                        {statusNames[e.status]}
                      </Badge>
                      <Text size="sm">
                        since {instant(e.started_at)}
                        {e.ended_at && `, until ${instant(e.ended_at)}`}
                        {e.reason && ` (${e.reason.replaceAll('_', ' ')})`}
                      </Text>
                    </Group>
                    {e.status === 'in_progress' && e.step && (
                      <Text size="sm" mb={6}>
                        At the step{' '}
                        <AnchorLink to="/flows/$id" params={{ id }} search={{ step: e.step }} inherit fw={700}>
                          {e.step}
                        </AnchorLink>
                        {e.since && ` since ${instant(e.since)}`}, {e.due ? `until ${instant(e.due)}` : 'until something else happens'}.
                      </Text>
                    )}
                    <Stack gap={2} component="ol" m={0} pl="lg">
                      {e.path.map((s, n) => (
                        <Text key={n} size="xs" c="dimmed" component="li">
                          {stepName(s.id, s.type)}: {resultName(s.result)}
                          {s.branch !== null && ` ${s.branch + 1}`}
                          {s.reason && `: ${s.reason}`}, {instant(s.at)}
                        </Text>
                      ))}
                    </Stack>
                  </Paper>
                ))}
              </Stack>
            )}
          </Box>
        )
      })}
    </Stack>
  )
}
