import { Badge, Box, Button, Group, Paper, Stack, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { ExplainedTree } from '../segments/ExplainDrawer'
import { useNames, useSegments } from '../segments/useSuggestions'
import type { Person } from './usePeople'

/** Which segments hold the person, and why each of them does or does not. */
export function SegmentsTab({ person, why, onWhy }: { person: Person; why: string | undefined; onWhy: (segment: string | undefined) => void }) {
  const may = useMay()
  const segments = useSegments()
  const [q, setQ] = useState('')
  if (!may('segments:read')) return <NoPermission permission="segments:read" />
  return (
    <QueryView query={segments} what="the segments">
      {(all) => {
        if (all.length === 0)
          return (
            <Empty icon="segment" title="There is no segment yet">
              Save one to see whether this person is in it, and why.
            </Empty>
          )
        const inIt = (id: string) => person.segments?.includes(id) ?? false
        const shown = all.filter((s) => s.name.toLowerCase().includes(q.toLowerCase()) || s._id === why).sort((a, b) => Number(inIt(b._id)) - Number(inIt(a._id)))
        return (
          <Stack gap="sm">
            <Group justify="space-between" align="flex-end">
              {all.length > 8 ? <TextInput label="Find a segment" value={q} onChange={(e) => setQ(e.currentTarget.value)} maw={300} /> : <span />}
              <AsOf at={person.as_of} />
            </Group>
            {person.segments === null && (
              <Text size="sm" c="dimmed">
                Which segments hold the person could not be found out in time. Each “Why?” answers it for one of them.
              </Text>
            )}
            <Paper withBorder component="ul" m={0} p={0} style={{ listStyle: 'none' }}>
              {shown.map((s, i) => (
                <Box component="li" key={s._id} data-asked={why === s._id || undefined} style={{ borderTop: i ? '1px solid var(--mantine-color-default-border)' : undefined, boxShadow: why === s._id ? 'inset 3px 0 0 var(--mantine-primary-color-filled)' : undefined, scrollMarginBlock: 64 }} px="sm" py={8}>
                  <Group justify="space-between" wrap="nowrap" gap="xs">
                    <Group gap="sm" wrap="nowrap" miw={0}>
                      <Box c={inIt(s._id) ? 'var(--mantine-color-green-text)' : 'dimmed'} pt={2}>
                        <Icon name={inIt(s._id) ? 'check' : 'x'} />
                      </Box>
                      <AnchorLink to="/segments/$id" params={{ id: s._id }} size="sm" fw={inIt(s._id) ? 600 : 400} truncate>
                        {s.name}
                      </AnchorLink>
                    </Group>
                    <Button size="compact-xs" variant="default" flex="none" onClick={() => onWhy(why === s._id ? undefined : s._id)} aria-expanded={why === s._id} aria-label={`Why ${inIt(s._id) ? '' : 'not '}in ${s.name}?`}>
                      {inIt(s._id) ? 'Why?' : 'Why not?'}
                    </Button>
                  </Group>
                  {why === s._id && <Why segment={s._id} profile={person.profile_id} />}
                </Box>
              ))}
            </Paper>
            {shown.length === 0 && (
              <Text size="sm" c="dimmed">
                No segment has “{q}” in its name.
              </Text>
            )}
          </Stack>
        )
      }}
    </QueryView>
  )
}

function Why({ segment, profile }: { segment: string; profile: string }) {
  const names = useNames()
  const answer = useQuery({
    queryKey: ['person', profile, 'explain', segment],
    queryFn: ({ signal }) => data(api.GET('/console/api/v1/segments/{id}/explain', { params: { path: { id: segment }, query: { profile_id: profile } }, signal })),
  })
  const box = useRef<HTMLDivElement>(null)
  const known = !answer.isPending
  useEffect(() => {
    // A frame later: the router brings a new screen to its top first.
    const frame = requestAnimationFrame(() => box.current?.closest('li')?.scrollIntoView({ block: 'nearest' }))
    return () => cancelAnimationFrame(frame)
  }, [segment, known])
  return (
    <Box ref={box} mt="xs" p="sm" bg="var(--panel)" role="region" aria-label="Reasons" style={{ borderRadius: 'var(--mantine-radius-sm)' }}>
      <QueryView query={answer} what="the reasons">
        {(a) => (
          <Stack gap="sm">
            <Group justify="space-between">
              <Badge color={a.member ? '#2b6e32' : 'gray.7'} variant="filled" size="lg" tt="none">
                {a.member ? 'In the segment' : 'Not in the segment'}
              </Badge>
              <AsOf at={a.as_of} />
            </Group>
            <ExplainedTree node={a.definition} names={names} />
          </Stack>
        )}
      </QueryView>
    </Box>
  )
}
