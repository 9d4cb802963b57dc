import { Box, Group, NativeSelect, Paper, Progress, Stack, Text, TextInput, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, data } from '@/shared/api/client'
import { AsOf } from '@/shared/AsOf'
import { count, instant, percent } from '@/shared/format'
import { QueryView } from '@/shared/states'
import { useSegments } from '../segments/useSuggestions'
import type { Segment } from './useSegment'

/** The segment beside another one, and beside itself at a past instant. */
export function Compare({ segment, other, at, onChange }: { segment: Segment; other: string | undefined; at: string | undefined; onChange: (change: { with?: string; at?: string }) => void }) {
  return (
    <Stack gap="xl">
      <Overlap segment={segment} other={other} onOther={(v) => onChange({ with: v })} />
      <Past segment={segment} at={at} onAt={(v) => onChange({ at: v })} />
    </Stack>
  )
}

function Overlap({ segment, other, onOther }: { segment: Segment; other: string | undefined; onOther: (id: string | undefined) => void }) {
  const segments = useSegments()
  const others = segments.data?.filter((s) => s._id !== segment._id) ?? []
  const name = others.find((s) => s._id === other)?.name ?? 'the other'
  const overlap = useQuery({
    queryKey: ['segment', segment._id, 'overlap', other],
    queryFn: ({ signal }) => data(api.GET('/console/api/v1/segments/{id}/overlap', { params: { path: { id: segment._id }, query: { with: other! } }, signal })),
    enabled: other !== undefined,
  })
  return (
    <Box component="section" aria-label="Overlap">
      <Title order={2} size="h4" mb="xs">
        Overlap with another segment
      </Title>
      {segments.data && others.length === 0 ? (
        <Text size="sm" c="dimmed">
          There is no other segment yet.
        </Text>
      ) : (
        <NativeSelect label="Other segment" maw={300} value={other ?? ''} onChange={(e) => onOther(e.currentTarget.value || undefined)} data={[{ value: '', label: 'Choose one' }, ...others.map((s) => ({ value: s._id, label: s.name }))]} />
      )}
      {other !== undefined && (
        <Box mt="sm">
          <QueryView query={overlap} what="the overlap">
            {(o) => {
              const all = o.both + o.only_segment + o.only_with
              const parts = [
                { n: o.only_segment, label: `only in ${segment.name}`, colour: 'cyan.7' },
                { n: o.both, label: 'in both', colour: 'indigo.7' },
                { n: o.only_with, label: `only in ${name}`, colour: 'orange.7' },
              ]
              return (
                <Paper withBorder p="md" maw={720} data-testid="overlap">
                  <Progress.Root size={18} aria-hidden>
                    {parts.map((p) => (
                      <Progress.Section key={p.label} value={all ? (100 * p.n) / all : 0} color={p.colour} />
                    ))}
                  </Progress.Root>
                  <Stack gap={4} mt="sm">
                    {parts.map((p) => (
                      <Group key={p.label} gap="xs" wrap="nowrap">
                        <Box w={10} h={10} bg={p.colour} style={{ borderRadius: 2, flex: 'none' }} aria-hidden />
                        <Text size="sm">
                          <b className="numbers">{count(p.n)}</b> {p.label} <Text span size="xs" c="dimmed">{percent(all ? p.n / all : 0)}</Text>
                        </Text>
                      </Group>
                    ))}
                  </Stack>
                  <Group justify="flex-end">
                    <AsOf at={o.as_of} />
                  </Group>
                </Paper>
              )
            }}
          </QueryView>
        </Box>
      )}
    </Box>
  )
}

/** An instant as the input for it has it, in the zone of the browser. */
function local(at: Date): string {
  const two = (n: number) => String(n).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`
}

const hour = 3_600_000

function Past({ segment, at, onAt }: { segment: Segment; at: string | undefined; onAt: (at: string | undefined) => void }) {
  const then = at ? new Date(at) : null
  const valid = then !== null && !Number.isNaN(then.getTime())
  const past = useQuery({
    queryKey: ['segment', segment._id, 'past', at],
    queryFn: async ({ signal }) => {
      if (then! <= new Date(segment.created_at)) return 0
      const { series } = await data(api.GET('/console/api/v1/segments/{id}/growth', { params: { path: { id: segment._id }, query: { from: new Date(then!.getTime() - hour).toISOString(), to: then!.toISOString(), granularity: 'hour' } }, signal }))
      return series.at(-1)?.members ?? 0
    },
    enabled: valid,
    staleTime: Infinity,
  })
  return (
    <Box component="section" aria-label="A past instant">
      <Title order={2} size="h4" mb="xs">
        A past instant
      </Title>
      <TextInput type="datetime-local" label="Instant" maw={260} value={valid ? local(then) : ''} min={local(new Date(segment.created_at))} max={local(new Date())} onChange={(e) => onAt(e.currentTarget.value ? new Date(e.currentTarget.value).toISOString() : undefined)} />
      {valid && (
        <Box mt="sm">
          <QueryView query={past} what="the members at that instant">
            {(n) => (
              <Text size="sm" data-testid="past">
                <b className="numbers">{count(n)}</b> members on {instant(then.toISOString())}
                {segment.count !== null && (
                  <>
                    , <b className="numbers">{count(segment.count)}</b> now ({segment.count >= n ? '+' : '−'}
                    {count(Math.abs(segment.count - n))})
                  </>
                )}
                . {then <= new Date(segment.created_at) && `The segment was created on ${instant(segment.created_at)}.`}
              </Text>
            )}
          </QueryView>
        </Box>
      )}
    </Box>
  )
}
