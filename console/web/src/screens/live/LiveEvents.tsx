import { Alert, Autocomplete, Button, Group, NativeSelect, Paper, Stack, TagsInput, Text } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { count } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { Page } from '@/shared/Page'
import { ScreenLink } from '@/shared/ScreenLink'
import { Empty, NoPermission } from '@/shared/states'
import { useLeaving } from '@/shared/useLeaving'
import { offered, useCatalog, useSegments } from '../segments/useSuggestions'
import { EventLog } from './EventLog'
import { useLive } from './useLive'

const route = getRouteApi('/shell/live')

const outcomes = [
  { value: '', label: 'Stored and refused' },
  { value: 'accepted', label: 'Stored' },
  { value: 'refused', label: 'Refused' },
  { value: 'duplicate', label: 'Repeats' },
  { value: 'all', label: 'All, with repeats' },
]

/** /live: events as they arrive, those refused with the reason and the body. */
export function LiveEvents() {
  const may = useMay()
  if (!may('events:read'))
    return (
      <Page title="Live events">
        <NoPermission permission="events:read" />
      </Page>
    )
  return <Watch />
}

function Watch() {
  const { types = [], who = '', segment = '', outcome = '', columns = [] } = route.useSearch()
  const navigate = route.useNavigate()
  const may = useMay()
  const catalog = useCatalog()
  const segments = useSegments()
  const query = new URLSearchParams()
  if (types.length > 0) query.set('event_type', types.join(','))
  if (who) query.set('identity', who)
  if (segment) query.set('segment_id', segment)
  if (outcome) query.set('outcome', outcome === 'all' ? 'accepted,refused,duplicate' : outcome)
  // Events that a broken connection left out can be read by type; other filters are the stream's alone.
  const readable = !who && !segment && outcome !== 'refused' && outcome !== 'duplicate'
  const { log, state, pause, resume, clear } = useLive(`/console/api/v1/events/live${query.size > 0 ? `?${query}` : ''}`, readable ? types : null)
  const change = (s: Record<string, unknown>) => void navigate({ search: (old) => ({ ...old, ...s }), replace: true })
  const filtered = query.size > 0
  // Properties of the one type that is asked for, to choose columns from.
  const only = types.length === 1 ? types[0]! : ''
  const details = useQuery({ queryKey: ['catalog', only], queryFn: () => data(api.GET('/console/api/v1/catalog/{id}', { params: { path: { id: only } } })), enabled: catalog.data?.some((t) => t.key === only) ?? false })
  return (
    <Page
      title="Live events"
      wide
      aside={
        <span role="status">
          {state === 'open' ? (log.paused ? `Paused, ${count(log.held.length + log.lost)} new` : 'Watching') : state === 'waiting' ? 'The connection is lost; it comes back by itself' : 'Connecting'}
        </span>
      }
      actions={
        <>
          {log.paused ? (
            <Button onClick={resume} leftSection={<Icon name="play" size={14} />}>
              Resume{log.held.length > 0 ? `: ${count(log.held.length + log.lost)} new` : ''}
            </Button>
          ) : (
            <Button variant="default" onClick={pause} leftSection={<Icon name="pause" size={14} />}>
              Pause
            </Button>
          )}
          <Button variant="default" onClick={clear} disabled={log.shown.length === 0}>
            Clear
          </Button>
        </>
      }
    >
      <Stack gap="sm">
        <Group gap="sm" align="flex-end" wrap="wrap">
          <TagsInput label="Event types" placeholder={types.length === 0 ? 'All' : ''} data={offered(catalog.data).map((t) => t.key)} value={types} onChange={(v) => change({ types: v.length > 0 ? v : undefined })} maxTags={20} flex="1 1 220px" maw={420} clearable clearButtonProps={{ 'aria-label': 'All types' }} />
          <Person value={who} onChange={(v) => change({ who: v || undefined })} />
          {may('segments:read') && (
            <NativeSelect label="Moved this segment" value={segment} onChange={(e) => change({ segment: e.currentTarget.value || undefined })} data={[{ value: '', label: 'Any event' }, ...(segments.data ?? []).map((s) => ({ value: s._id, label: s.name }))]} flex="1 1 160px" maw={240} />
          )}
          <NativeSelect label="Outcome" value={outcome} onChange={(e) => change({ outcome: e.currentTarget.value || undefined })} data={outcomes} flex="1 1 150px" maw={200} />
          <TagsInput label="Properties as columns" placeholder={columns.length === 0 ? 'A path, such as order.id' : ''} data={details.data?.properties.map((p) => p.path) ?? []} value={columns} onChange={(v) => change({ columns: v.length > 0 ? v : undefined })} maxTags={6} flex="1 1 220px" maw={360} clearable clearButtonProps={{ 'aria-label': 'No columns' }} />
        </Group>
        {log.paused && log.lost > 0 && (
          <Alert color="yellow" variant="light" icon={<Icon name="alert" />}>
            More came than can be held here: the oldest {count(log.lost)} of those that came since the pause will not be shown. They are stored all the same.
          </Alert>
        )}
        <Paper withBorder>
          {log.shown.length > 0 ? (
            <EventLog entries={log.shown} columns={columns} segmentName={(id) => segments.data?.find((s) => s._id === id)?.name ?? id} onPerson={(id) => change({ who: id })} onType={(t) => change({ types: [t] })} onOpen={pause} elsewhere={<Elsewhere who={who} segment={segment} />} />
          ) : (
            <Empty icon="activity" title={log.paused ? 'Paused' : filtered ? 'Nothing that the filters let through has come yet' : 'Waiting for events'}>
              {log.paused ? 'What comes meanwhile is held, and shown when you resume.' : filtered ? 'Events show here as they come. Filters work from now on, refused events are shown from before too.' : 'Events show here the moment they are stored, and those that are refused with the reason.'}
            </Empty>
          )}
        </Paper>
        <Text size="xs" c="dimmed">
          The newest 1,000 since this page was opened. Earlier ones are in each person's timeline and in exports.
        </Text>
      </Stack>
    </Page>
  )
}

/** Leads to what the stream's filters left out while the connection was lost. */
function Elsewhere({ who, segment }: { who: string; segment: string }) {
  if (who)
    return (
      <ScreenLink {...(who.startsWith('prf_') ? { to: '/people/$id', params: { id: who } } : { to: '/people', search: { q: who } })} size="xs" underline="always">
        Look in the person’s timeline
      </ScreenLink>
    )
  if (segment)
    return (
      <ScreenLink to="/segments/$id" params={{ id: segment }} size="xs" underline="always">
        Look at the segment’s entries and exits
      </ScreenLink>
    )
  return null
}

/** An identifier or a profile id, taken over a moment after the last keystroke. */
function Person({ value, onChange }: { value: string; onChange: (v: string) => void }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const leaving = useLeaving()
  const later = useDebouncedCallback((v: string) => leaving() || onChange(v), 400)
  return <Autocomplete label="Person" placeholder="E-mail, id or phone" value={text} onChange={(v) => (setText(v), later(v.trim()))} flex="1 1 180px" maw={300} clearable clearButtonProps={{ 'aria-label': 'Everybody' }} />
}
