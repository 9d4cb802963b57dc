import { Box, Button, Group, Loader, Paper, Text, Title } from '@mantine/core'
import { useQueries, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { api, data } from '@/shared/api/client'
import { ApiError } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { instant, short } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { identifierOf, nameOf } from '@/shared/person'
import { useStream } from '@/shared/useStream'
import { causeNames } from '../people/timelineWords'
import { causeOf } from './cause'
import type { Segment } from './useSegment'

interface Move {
  profile_id: string
  cause: keyof typeof causeNames
  at: string
  entered: boolean
  position: string
}

/** Entries and exits that are read from the beginning when they are no more than this. */
const replayed = 2000
/** Entries and exits that are kept. */
const kept = 200

/**
 * Who enters and leaves, as it happens, each once and in order. moves is how many there
 * were: a short history comes first, of a long one only what happens from now on.
 */
export function Feed({ segment, moves }: { segment: Segment; moves: number | undefined }) {
  const id = segment._id
  const client = useQueryClient()
  const [list, setList] = useState<Move[]>([])
  const [paused, setPaused] = useState(false)
  const [shown, setShown] = useState(20)
  const waiting = useRef<Move[]>([])
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  // How the stream begins is decided once, so that it is not opened anew by each move.
  const [address, setAddress] = useState<string | null>(null)
  const whole = useRef(false)
  useEffect(() => {
    if (moves === undefined || address !== null) return
    whole.current = moves <= replayed
    setAddress(`/console/api/v1/segments/${encodeURIComponent(id)}/transitions${whole.current ? '?after=0-0' : ''}`)
  }, [moves, address, id])
  useEffect(() => () => clearTimeout(timer.current), [])
  const flush = () => {
    const fresh = waiting.current
    waiting.current = []
    setList((old) => [...fresh.reverse(), ...old].slice(0, kept))
  }
  const began = useRef(segment.as_of)
  const take = (entered: boolean) => (d: unknown) => {
    const m = { ...(d as Omit<Move, 'entered'>), entered }
    waiting.current = [...waiting.current, m].slice(-kept)
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      if (!pausedNow.current) flush()
      // What was there before the page was opened is counted already.
      if (m.at >= began.current) void client.invalidateQueries({ predicate: (q) => (q.queryKey[0] === 'segment' && q.queryKey[1] === id && (q.queryKey[2] === 'record' || q.queryKey[2] === 'growth')) || q.queryKey[0] === 'people' })
    }, 300)
  }
  const pausedNow = useRef(paused)
  pausedNow.current = paused
  const state = useStream(address, { entered: take(true), left: take(false) }, (a, lastId) => `${a.split('?')[0]}?after=${encodeURIComponent(lastId)}`)
  return (
    <Box component="section" aria-label="Entries and exits" miw={0}>
      <Group justify="space-between" mb="xs">
        <Group gap="xs">
          <Title order={2} size="h4">
            Entries and exits
          </Title>
          {state === 'waiting' ? (
            <Loader size={12} aria-label="Connecting again" />
          ) : (
            <Text size="xs" c="dimmed" data-testid="stream">
              {paused ? 'paused' : state === 'open' ? 'live' : 'connecting'}
            </Text>
          )}
        </Group>
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => {
            if (paused) flush()
            setPaused(!paused)
          }}
          leftSection={<Icon name={paused ? 'play' : 'pause'} size={12} />}
        >
          {paused ? 'Resume' : 'Pause'}
        </Button>
      </Group>
      {list.length === 0 ? (
        <Text size="sm" c="dimmed">
          {whole.current || address === null ? 'Nobody entered or left yet.' : 'The history is long, so that only what happens from now on is listed.'} Entries and exits come here the moment they happen.
        </Text>
      ) : (
        <Moves list={list.slice(0, shown)} segment={segment} />
      )}
      {list.length > shown && (
        <Button mt="xs" size="compact-xs" variant="default" onClick={() => setShown(shown + 20)}>
          Show more
        </Button>
      )}
    </Box>
  )
}

function Moves({ list, segment }: { list: Move[]; segment: Segment }) {
  const may = useMay()
  const ids = [...new Set(list.map((m) => m.profile_id))]
  const people = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['profile', id],
      // An erased profile is null.
      queryFn: () => data(api.GET('/console/api/v1/profiles/{id}', { params: { path: { id } } })).catch((e: unknown) => (e instanceof ApiError && e.status === 404 ? null : Promise.reject(e))),
      enabled: may('contacts:read'),
      staleTime: 60_000,
    })),
  })
  return (
    <Paper withBorder component="ol" m={0} p={0} style={{ listStyle: 'none' }} aria-live="polite">
      {list.map((m, i) => {
        const p = people[ids.indexOf(m.profile_id)]?.data
        return (
          <Box component="li" key={m.position} style={{ borderTop: i ? '1px solid var(--mantine-color-default-border)' : undefined }} px="sm" py={6} data-testid="move">
            <Group gap="sm" wrap="nowrap">
              <Box c={m.entered ? 'var(--mantine-color-green-text)' : 'var(--mantine-color-red-text)'} aria-hidden>
                <Icon name={m.entered ? 'plus' : 'x'} size={14} />
              </Box>
              <Box flex={1} miw={0}>
                <Text size="sm" truncate component="div">
                  {p === null ? 'An erased profile' : <AnchorLink to="/people/$id" params={{ id: m.profile_id }} search={{ tab: 'segments', why: segment._id }} size="sm" underline="always">{p ? nameOf(p) : m.profile_id}</AnchorLink>} {m.entered ? 'entered' : 'left'}
                </Text>
                <Text size="xs" c="dimmed" truncate>
                  {causeOf(m.cause, segment)}
                  {p && nameOf(p) !== identifierOf(p) && `, ${identifierOf(p)}`}
                </Text>
              </Box>
              <Text size="xs" c="dimmed" className="numbers" title={instant(m.at)} component="time" dateTime={m.at} style={{ flex: 'none' }}>
                {short(m.at, Date.now())}
              </Text>
            </Group>
          </Box>
        )
      })}
    </Paper>
  )
}
