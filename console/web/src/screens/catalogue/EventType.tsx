import { Alert, Group, Paper, SegmentedControl, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { count, instant, short } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { Plot } from '@/shared/Plot'
import { overSpans } from '@/shared/spans'
import { Empty, QueryView } from '@/shared/states'
import { driftOf } from './drift'
import { Describe } from './Describe'
import { Fields } from './Fields'

const route = getRouteApi('/shell/catalogue/$key')
const day = 86_400_000

/** /catalogue/$key: the volume and the properties of a type of events. */
export function EventType() {
  const { key } = route.useParams()
  const search = route.useSearch()
  const days = [1, 7, 30, 90].includes(search.days ?? 0) ? search.days! : 30
  const navigate = route.useNavigate()
  const may = useMay()
  const type = useQuery({ queryKey: ['catalog', key], queryFn: () => data(api.GET('/console/api/v1/catalog/{id}', { params: { path: { id: key } } })) })
  const volume = useQuery({
    queryKey: ['analytics', 'events', key, days],
    queryFn: () => data(api.GET('/console/api/v1/analytics/events', { params: { query: { event_type: key, from: new Date(Date.now() - days * day).toISOString(), granularity: days === 1 ? 'hour' : 'day' } } })),
    enabled: may('analytics:read'),
  })
  const by = days === 1 ? 'hour' : 'day'
  const plot = useMemo(() => (volume.data ? overSpans(volume.data.range, by, [{ label: 'Events', points: (volume.data.events[0]?.series ?? []).map((p) => ({ start: p.start, value: p.events })) }]) : undefined), [volume.data, by])
  return (
    <Page title={type.data?.name ?? key} aside={type.dataUpdatedAt > 0 && <AsOf at={new Date(type.dataUpdatedAt).toISOString()} />} actions={<AnchorLink to="/live" search={{ types: [key] }} size="sm">Watch it live</AnchorLink>}>
      <Stack gap="md">
        <AnchorLink to="/catalogue" size="sm">
          The whole catalogue
        </AnchorLink>
        {type.data && <Describe key={key} type={type.data} />}
        <QueryView query={type} what="the event type">
          {(t) => {
            const drifts = t.properties.flatMap((f) => (driftOf(f, t.last_seen) ? [f.path] : []))
            return (
              <>
                {drifts.length > 0 && (
                  <Alert color="yellow" variant="light" icon={<Icon name="alert" />} title={drifts.length === 1 ? 'One property drifts' : `${drifts.length} properties drift`}>
                    {drifts.join(', ')}: see below. Conditions on them may miss people.
                  </Alert>
                )}
                <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
                  {(
                    [
                      ['Events', count(t.count)],
                      ['Properties', count(t.properties.length)],
                      ['First seen', t.first_seen ? short(t.first_seen, Date.now()) : 'not yet'],
                      ['Last seen', t.last_seen ? short(t.last_seen, Date.now()) : t.count > 0 ? 'not known' : 'not yet'],
                    ] as const
                  ).map(([label, value]) => (
                    <Paper key={label} withBorder p="sm">
                      <Text size="xs" c="dimmed">
                        {label}
                      </Text>
                      <Text fw={600} className="numbers">
                        {value}
                      </Text>
                    </Paper>
                  ))}
                </SimpleGrid>
                {may('analytics:read') && (
                  <Paper withBorder p="md">
                    <Group justify="space-between" mb="xs">
                      <Title order={2} size="h5">
                        Volume
                      </Title>
                      <SegmentedControl size="xs" aria-label="Time" value={String(days)} onChange={(v) => void navigate({ search: (s) => ({ ...s, days: Number(v) }), replace: true })} data={[{ value: '1', label: 'Day' }, { value: '7', label: 'Week' }, { value: '30', label: '30 days' }, { value: '90', label: '90 days' }]} />
                    </Group>
                    <QueryView query={volume} what="the volume">
                      {(v) =>
                        !v.events[0] ? (
                          <Text size="sm" c="dimmed">
                            No events in this period.
                          </Text>
                        ) : (
                          <>
                            {plot && <Plot {...plot} spans label={`Events of the type ${key} by ${by}`} />}
                            <Text size="xs" c="dimmed">
                              {count(v.events[0].events)} events of {count(v.events[0].contacts)} people since {instant(v.range.from)}
                            </Text>
                          </>
                        )
                      }
                    </QueryView>
                  </Paper>
                )}
                <Title order={2} size="h5">
                  Properties
                </Title>
                {t.properties.length === 0 ? (
                  <Empty icon="tag" title="No property is known">
                    Properties of its events appear here.
                  </Empty>
                ) : (
                  <>
                    <Fields fields={t.properties} of="events" lastSeen={t.last_seen} open={search.open} onOpen={(open) => void navigate({ search: (s) => ({ ...s, open }), replace: true })} />
                    <Text size="xs" c="dimmed">
                      Shares of properties are of {count(t.looked_at)} events looked at; shares of types and values are of the events that have the property.
                      {t.more > 0 && ' More properties were found than can be kept here.'}
                    </Text>
                  </>
                )}
              </>
            )
          }}
        </QueryView>
      </Stack>
    </Page>
  )
}
