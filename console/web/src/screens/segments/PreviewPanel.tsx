import { Alert, Box, Divider, Group, Paper, Progress, Stack, Text, Tooltip, UnstyledButton } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { ApiError, messageOf } from '@/shared/api/errors'
import { AsOf } from '@/shared/AsOf'
import { count, percent } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { identifierOf, nameOf } from '@/shared/person'
import { PersonSearch } from '@/shared/PersonSearch'
import classes from './builder.module.css'
import { channelNames } from './fields'
import type { Preview } from './usePreview'

/** Members whom a message reaches now, by channel: e-mail always, others where there is somebody. */
const reachable = (p: Preview) => Object.entries(p.reachable).filter(([channel, n]) => channel === 'email' || n > 0)

/** On narrow screens the total stays in view while the conditions are edited. */
export function TotalBar({ answer, stale }: { answer: Preview | undefined; stale: boolean }) {
  if (!answer) return null
  return (
    <Paper withBorder className={classes.bar} px="md" py={6} hiddenFrom="md" aria-hidden>
      <Text size="sm" className={`numbers ${stale ? classes.stale : ''}`}>
        <b>{count(answer.count)}</b> {answer.count === 1 ? 'person' : 'people'}, {percent(answer.share)}
      </Text>
      <AsOf at={answer.as_of} />
    </Paper>
  )
}

/** The total, what it is of, and a sample of people. */
export function PreviewPanel({ query, answer, stale, incomplete, refused, onPerson }: { query: UseQueryResult<unknown>; answer: Preview | undefined; stale: boolean; incomplete: boolean; refused: boolean; onPerson: (profileId: string) => void }) {
  const error = query.error
  return (
    <Paper withBorder p="md" className={classes.panel} bg="var(--panel)" component="section" aria-label="Preview">
      <Stack gap="sm">
        <div aria-live="polite" aria-atomic className={stale ? classes.stale : undefined}>
          <Group justify="space-between" align="baseline" wrap="nowrap">
            <Text fz={32} fw={700} lh={1.1} className="numbers" data-testid="total">
              {answer ? count(answer.count) : '–'}
            </Text>
            {answer && <AsOf at={answer.as_of} />}
          </Group>
          <Text size="sm" c="dimmed">
            {answer ? (
              <>
                {answer.count === 1 ? 'person' : 'people'}, {percent(answer.share)} of {count(answer.profiles)}
              </>
            ) : (
              'people in this segment'
            )}
          </Text>
        </div>
        {answer && <Progress value={answer.share * 100} size={4} aria-label={`${percent(answer.share)} of all people`} />}
        {incomplete && (
          <Text size="xs" c="dimmed">
            {answer ? 'The definition is not complete: the number is that of the last complete one.' : 'The number appears once the first condition is complete.'}
          </Text>
        )}
        {error && !(refused && error instanceof ApiError && error.field === 'definition') && (
          <Alert color={error instanceof ApiError && error.unavailable ? 'yellow' : 'red'} variant="light" p="xs" icon={<Icon name="alert" />} role="alert">
            <Text size="xs">{messageOf(error)}</Text>
          </Alert>
        )}
        {answer && answer.entering !== undefined && answer.leaving !== undefined && (
          <Text size="sm" data-testid="changes">
            <b>{count(answer.entering)}</b> would enter, <b>{count(answer.leaving)}</b> would leave
          </Text>
        )}
        {answer && answer.count > 0 && (
          <Box data-testid="reachable">
            <Divider label="Reachable" labelPosition="left" mb={4} />
            {reachable(answer).map(([channel, n]) => (
              <Group key={channel} justify="space-between" gap="xs">
                <Text size="xs">{channelNames[channel] ?? channel}</Text>
                <Text size="xs" className="numbers">
                  {count(n)} <Text span c="dimmed" size="xs">({percent(answer.count ? n / answer.count : 0)})</Text>
                </Text>
              </Group>
            ))}
          </Box>
        )}
        {answer && answer.sample.length > 0 && (
          <Box className={stale ? classes.stale : undefined}>
            <Divider label="Some of them: choose one to see why" labelPosition="left" mb={4} />
            <Stack gap={0} component="ul" m={0} p={0} style={{ listStyle: 'none' }}>
              {answer.sample.map((p) => (
                <li key={p.profile_id}>
                  <Tooltip label="Why is this person in the segment?" position="left">
                    <UnstyledButton w="100%" py={3} px={4} onClick={() => onPerson(p.profile_id)} className="person">
                      <Group justify="space-between" wrap="nowrap" gap="xs">
                        <Text size="sm" truncate>
                          {nameOf(p)}
                        </Text>
                        {nameOf(p) !== identifierOf(p) && (
                          <Text size="xs" c="dimmed" truncate>
                            {identifierOf(p)}
                          </Text>
                        )}
                      </Group>
                    </UnstyledButton>
                  </Tooltip>
                </li>
              ))}
            </Stack>
          </Box>
        )}
        {answer && <PersonSearch label="Why is somebody in it, or not?" onChoose={onPerson} />}
        {answer && answer.count === 0 && !stale && (
          <Text size="sm" c="dimmed">
            Nobody. The numbers beside the conditions show which one leaves nobody over.
          </Text>
        )}
      </Stack>
    </Paper>
  )
}
