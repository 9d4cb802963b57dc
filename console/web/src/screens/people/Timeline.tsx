import { Box, Button, Chip, Group, Paper, Stack, Text, Tooltip, UnstyledButton } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, whole } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { Code } from '@/shared/Code'
import { date, instant, timeOfDay } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { Empty, Failed, Loading, NoPermission } from '@/shared/states'
import { kindIcons, kindNames, wordsOf, type Entry, type Kind } from './timelineWords'

const allKinds = Object.keys(kindNames) as Kind[]

/** All that happened to a person, the newest first, with a filter by kind. */
export function Timeline({ id, kinds, onKinds }: { id: string; kinds: string[] | undefined; onKinds: (kinds: string[] | undefined) => void }) {
  const may = useMay()
  const reads = may('events:read')
  const chosen = allKinds.filter((k) => kinds?.includes(k))
  const timeline = useInfiniteQuery({
    queryKey: ['person', id, 'timeline', chosen],
    queryFn: ({ pageParam, signal }) => whole(api.GET('/console/api/v1/profiles/{id}/timeline', { params: { path: { id }, query: { kinds: chosen.length ? chosen.join(',') : undefined, limit: 100, cursor: pageParam } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    enabled: reads,
  })
  if (!reads) return <NoPermission permission="events:read" />
  const entries = timeline.data?.pages.flatMap((p) => p.data) ?? []
  const days: { day: string; entries: Entry[] }[] = []
  for (const e of entries) {
    const day = date(e.at)
    if (days.at(-1)?.day !== day) days.push({ day, entries: [] })
    days.at(-1)!.entries.push(e)
  }
  return (
    <Stack gap="sm">
      <Chip.Group multiple value={chosen} onChange={(v: string[]) => onKinds(v.length ? v : undefined)}>
        <Group gap={6} role="group" aria-label="Kinds of entries">
          {allKinds.map((k) => (
            <Chip key={k} value={k} size="xs" variant="outline">
              {kindNames[k]}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
      {timeline.isError && entries.length === 0 ? (
        <Failed error={timeline.error} retry={() => void timeline.refetch()} />
      ) : timeline.isPending ? (
        <Loading what="the timeline" />
      ) : entries.length === 0 ? (
        <Empty icon="activity" title={chosen.length ? 'Nothing of this kind happened' : 'Nothing happened yet'} action={chosen.length > 0 && <Button variant="default" onClick={() => onKinds(undefined)}>Show all kinds</Button>}>
          Events and everything that follows from them appear here at once.
        </Empty>
      ) : (
        days.map(({ day, entries }) => (
          <Box key={day} component="section" aria-label={day}>
            <Text size="xs" fw={600} c="dimmed" mb={4}>
              {day}
            </Text>
            <Paper withBorder component="ol" m={0} p={0} style={{ listStyle: 'none' }}>
              {entries.map((e, i) => (
                <Box component="li" key={`${e.at} ${i}`} style={{ borderTop: i ? '1px solid var(--mantine-color-default-border)' : undefined }} data-testid="entry">
                  <EntryView e={e} profile={id} />
                </Box>
              ))}
            </Paper>
          </Box>
        ))
      )}
      {timeline.isFetchNextPageError && <Failed error={timeline.error} />}
      {timeline.hasNextPage && (
        <Button variant="default" loading={timeline.isFetchingNextPage} onClick={() => void timeline.fetchNextPage()} style={{ alignSelf: 'flex-start' }}>
          Earlier
        </Button>
      )}
    </Stack>
  )
}

function EntryView({ e, profile }: { e: Entry; profile: string }) {
  const [open, setOpen] = useState(false)
  const { title, detail } = wordsOf(e, profile)
  const properties = e.event && (Object.keys(e.event.properties).length > 0 || e.event.idempotency_key) ? e.event : null
  const head = (
    <Group gap="sm" wrap="nowrap" align="flex-start" px="sm" py={6}>
      <Tooltip label={instant(e.at)}>
        <Text size="xs" c="dimmed" className="numbers" component="time" dateTime={e.at} pt={2} style={{ flex: 'none' }}>
          {timeOfDay(e.at)}
        </Text>
      </Tooltip>
      <Text c="dimmed" component="span" pt={2} title={kindNames[e.kind]}>
        <Icon name={kindIcons[e.kind]} size={14} />
      </Text>
      <Box flex={1} miw={0}>
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {title}
        </Text>
        {detail && (
          <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            {detail}
          </Text>
        )}
      </Box>
      {e.transition?.segment_name != null && (
        <AnchorLink to="/people/$id" from="/people/$id" params={(p) => p} search={{ tab: 'segments', why: e.transition.segment_id }} size="xs" style={{ flex: 'none' }}>
          Why?
        </AnchorLink>
      )}
      {properties && (
        <Text c="dimmed" component="span" pt={2}>
          <Icon name={open ? 'chevronDown' : 'chevronRight'} size={14} />
        </Text>
      )}
    </Group>
  )
  if (!properties) return head
  return (
    <>
      <UnstyledButton w="100%" className="person" aria-expanded={open} onClick={() => setOpen(!open)}>
        {head}
      </UnstyledButton>
      {open && (
        <Box px="sm" pb="sm">
          <Code language="json" label={`Properties of ${title}`} readOnly value={JSON.stringify(properties.properties, null, 2)} minHeight={40} maxHeight={320} />
          {properties.idempotency_key && (
            <Text size="xs" c="dimmed" mt={4} style={{ overflowWrap: 'anywhere' }}>
              Idempotency key: {properties.idempotency_key}
            </Text>
          )}
        </Box>
      )}
    </>
  )
}
