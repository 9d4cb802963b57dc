import { Box, Group, Paper, SegmentedControl, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, data } from '@/shared/api/client'
import { AsOf } from '@/shared/AsOf'
import { CopyButton } from '@/shared/CopyButton'
import { count } from '@/shared/format'
import { Plot } from '@/shared/Plot'
import { atEnds, overSpans } from '@/shared/spans'
import { QueryView } from '@/shared/states'
import { Uses } from '@/shared/Uses'
import { Feed } from './Feed'
import { drawable, useGrowth, usualSpan, type By, type Segment } from './useSegment'

/** How the segment grew, who enters and leaves now, and where it is used. */
export function Overview({ segment, by, onBy }: { segment: Segment; by: By | undefined; onBy: (by: By) => void }) {
  const span = by ?? usualSpan(segment.created_at, Date.now())
  const growth = useGrowth(segment._id, span)
  const series = growth.data?.series
  const asOf = growth.data?.as_of
  const plots = useMemo(() => {
    if (!series || !asOf) return undefined
    const drawn = drawable(series, span)
    const of = (key: 'entered' | 'left' | 'members') => drawn.map((s) => ({ start: s.start, value: s[key] }))
    const before = drawn[0] ? drawn[0].members - drawn[0].entered + drawn[0].left : 0
    const members = atEnds(of('members'), span, asOf, before)
    return {
      members: { times: members.times, series: [{ label: 'Members', values: members.values }] },
      moves: overSpans({ from: drawn[0]?.start ?? asOf, to: asOf }, span, [
        { label: 'Entered', points: of('entered'), colour: 'teal' },
        { label: 'Left', points: of('left'), colour: 'red' },
      ]),
    }
  }, [series, asOf, span])
  const entered = series?.reduce((n, s) => n + s.entered, 0) ?? 0
  const left = series?.reduce((n, s) => n + s.left, 0) ?? 0
  return (
    <Stack gap="lg">
      <Box component="section" aria-label="Members over time">
        <Group justify="space-between" mb="xs" gap="xs">
          <Title order={2} size="h4">
            Members over time
          </Title>
          <Group gap="xs">
            <SegmentedControl size="xs" value={span} onChange={(v) => onBy(v as By)} data={[{ value: 'hour', label: 'Hours' }, { value: 'day', label: 'Days' }, { value: 'week', label: 'Weeks' }, { value: 'month', label: 'Months' }]} aria-label="Spans of the chart" />
            {series && <CopyButton value={['start,entered,left,members_at_end', ...series.map((s) => [s.start, s.entered, s.left, s.members].join(','))].join('\n')} label="Copy as CSV" />}
          </Group>
        </Group>
        <QueryView query={growth} what="members over time">
          {(g) => (
            <Stack gap="xs">
              <Group justify="space-between" gap="xs">
                <Text size="sm" data-testid="moves">
                  <b>{count(entered)}</b> entered and <b>{count(left)}</b> left since the segment was created
                </Text>
                <AsOf at={g.as_of} />
              </Group>
              {plots && (
                <SimpleGrid cols={{ base: 1, md: 2 }}>
                  <Paper withBorder p="sm">
                    <Text size="xs" c="dimmed">
                      Members at the end of each {span}
                    </Text>
                    <Plot {...plots.members} label={`Members by ${span}: ${count(g.series.at(-1)?.members ?? 0)} at the end`} height={180} />
                  </Paper>
                  <Paper withBorder p="sm">
                    <Text size="xs" c="dimmed">
                      Entered and left in each {span}
                    </Text>
                    <Plot {...plots.moves} spans label={`Entries and exits by ${span}: ${count(entered)} entered, ${count(left)} left`} height={180} />
                  </Paper>
                </SimpleGrid>
              )}
            </Stack>
          )}
        </QueryView>
      </Box>
      <div className="beside">
        <Feed segment={segment} moves={growth.data ? entered + left : undefined} />
        <UsedIn id={segment._id} />
      </div>
    </Stack>
  )
}

function UsedIn({ id }: { id: string }) {
  const uses = useQuery({ queryKey: ['segment', id, 'uses'], queryFn: ({ signal }) => data(api.GET('/console/api/v1/segments/{id}/used-in', { params: { path: { id } }, signal })) })
  return (
    <Box component="section" aria-label="Used in">
      <Title order={2} size="h4" mb="xs">
        Used in
      </Title>
      <QueryView query={uses} what="where it is used">
        {(list) => <Uses uses={list} none="No segment, flow or campaign that is still to be sent uses it." />}
      </QueryView>
    </Box>
  )
}
