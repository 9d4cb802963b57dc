import { Alert, Box, Button, Group, Menu, Paper, Stack, Tabs, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useRef, type ReactNode } from 'react'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { ago, count, date, instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { identifierOf, nameOf } from '@/shared/person'
import { NoPermission, QueryView } from '@/shared/states'
import { useStream } from '@/shared/useStream'
import { useSegments } from '../segments/useSuggestions'
import { ConsentTab } from './ConsentTab'
import { FlowsTab } from './FlowsTab'
import { InboxTab } from './InboxTab'
import { OrdersTab } from './OrdersTab'
import { ProfileTab } from './ProfileTab'
import { channels } from '@/shared/peopleSearch'
import { SegmentsTab } from './SegmentsTab'
import { StatusText } from './StatusText'
import { Timeline } from './Timeline'
import { useActs } from './useActs'
import { useLists } from '../segments/useSuggestions'
import { usePerson, type Person } from './usePeople'
import { channelName, channelTitle } from './words'

const route = getRouteApi('/shell/people/$id')

/** /people/$id: all about one person. */
export function PersonPage() {
  const { id } = route.useParams()
  const may = useMay()
  const person = usePerson(id)
  useFresh(may('events:read') && person.data ? person.data.profile_id : null)
  if (!may('contacts:read')) return <NoPermission permission="contacts:read" />
  return (
    <QueryView query={person} what="the person">
      {(p) => <View person={p} asked={id} />}
    </QueryView>
  )
}

const tabs = { timeline: 'Timeline', segments: 'Segments', flows: 'Flows', orders: 'Orders', inbox: 'Inbox', profile: 'Profile', consent: 'Consent' } as const

function View({ person, asked }: { person: Person; asked: string }) {
  const { tab = 'timeline', kinds, why } = route.useSearch()
  const navigate = route.useNavigate()
  const acts = useActs(person)
  return (
    <Page title={nameOf(person)} aside={nameOf(person) !== identifierOf(person) ? <span style={{ overflowWrap: 'anywhere' }}>{identifierOf(person)}</span> : undefined} actions={<Actions person={person} acts={acts} />}>
      {asked !== person.profile_id && (
        <Alert color="yellow" variant="light" icon={<Icon name="users" />} mb="md">
          The profile {asked} became part of this one.
        </Alert>
      )}
      <div className="beside">
        <Tabs value={tab} onChange={(t) => void navigate({ search: { tab: t === 'timeline' ? undefined : (t as keyof typeof tabs) } })} keepMounted={false} miw={0}>
          <Tabs.List mb="md">
            {Object.entries(tabs).map(([key, label]) => (
              <Tabs.Tab key={key} value={key}>
                {label}
                {key === 'profile' && person.conflicts.length > 0 && (
                  <Text span size="xs" ml={4} aria-label={`${person.conflicts.length} conflicts`}>
                    ({person.conflicts.length})
                  </Text>
                )}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <Tabs.Panel value="timeline">
            <Timeline id={person.profile_id} kinds={kinds} onKinds={(kinds) => void navigate({ search: (s) => ({ ...s, kinds }), replace: true })} />
          </Tabs.Panel>
          <Tabs.Panel value="segments">
            <SegmentsTab person={person} why={why} onWhy={(why) => void navigate({ search: (s) => ({ ...s, why }), replace: true })} />
          </Tabs.Panel>
          <Tabs.Panel value="flows">
            <FlowsTab person={person} />
          </Tabs.Panel>
          <Tabs.Panel value="orders">
            <OrdersTab id={person.profile_id} />
          </Tabs.Panel>
          <Tabs.Panel value="inbox">
            <InboxTab id={person.profile_id} />
          </Tabs.Panel>
          <Tabs.Panel value="profile">
            <ProfileTab person={person} />
          </Tabs.Panel>
          <Tabs.Panel value="consent">
            <ConsentTab person={person} acts={acts} />
          </Tabs.Panel>
        </Tabs>
        <Summary person={person} acts={acts} />
      </div>
    </Page>
  )
}

/** Reads what is shown of a person anew after each of their events, twice a second at most. */
function useFresh(id: string | null) {
  const client = useQueryClient()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  useStream(id ? `/console/api/v1/events/live?outcome=accepted&identity=${encodeURIComponent(id)}` : null, {
    event: () => {
      timer.current ??= setTimeout(() => {
        timer.current = undefined
        void client.invalidateQueries({ queryKey: ['person', id] })
      }, 500)
    },
  })
}

function Actions({ person, acts }: { person: Person; acts: ReturnType<typeof useActs> }) {
  const may = useMay()
  const lists = useLists()
  const writes = may('contacts:write')
  const free = lists.data?.filter((l) => !person.lists.includes(l._id)) ?? []
  return (
    <>
      <Button component="a" variant="default" href={`/console/api/v1/contacts/${encodeURIComponent(person.profile_id)}/export`} download={`${identifierOf(person)}.json`} leftSection={<Icon name="download" size={14} />}>
        Export
      </Button>
      {may('lists:write') && (
        <Menu position="bottom-end">
          <Menu.Target>
            <Button variant="default" leftSection={<Icon name="list" size={14} />}>
              Add to a list
            </Button>
          </Menu.Target>
          <Menu.Dropdown mah={360} style={{ overflow: 'auto' }}>
            {person.identities.email.length === 0 ? (
              <Menu.Label>Lists hold people by e-mail, and this person has none.</Menu.Label>
            ) : free.length === 0 ? (
              <Menu.Label>{lists.data?.length ? 'The person is on every list.' : 'There is no list yet.'}</Menu.Label>
            ) : (
              free.map((l) => (
                <Menu.Item key={l._id} onClick={() => void acts.addToList(l)}>
                  {l.name}
                </Menu.Item>
              ))
            )}
          </Menu.Dropdown>
        </Menu>
      )}
      {writes && (
        <Menu position="bottom-end">
          <Menu.Target>
            <Button variant="default" leftSection={<Icon name="dots" size={14} />}>
              Actions
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {channels.filter((c) => person.consent[c]?.status === 'subscribed').map((c) => (
              <Menu.Item key={c} onClick={() => void acts.unsubscribe(c)} leftSection={<Icon name="x" size={14} />}>
                Unsubscribe from {channelName(c)}
              </Menu.Item>
            ))}
            {(['email', 'sms', 'push'] as const).filter((c) => !person.suppressions[c]).map((c) => (
              <Menu.Item key={c} onClick={() => void acts.suppress(c)} leftSection={<Icon name="lock" size={14} />}>
                Block {channelName(c)}
              </Menu.Item>
            ))}
            <Menu.Divider />
            <Menu.Item onClick={() => void acts.erase()} leftSection={<Icon name="trash" size={14} />}>
              Erase …
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      )}
    </>
  )
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Group justify="space-between" gap="xs" wrap="nowrap" align="flex-start">
      <Text size="xs" c="dimmed" style={{ flex: 'none' }}>
        {label}
      </Text>
      <Box miw={0} style={{ overflowWrap: 'anywhere', textAlign: 'right' }}>
        {children}
      </Box>
    </Group>
  )
}

function Summary({ person, acts }: { person: Person; acts: ReturnType<typeof useActs> }) {
  const may = useMay()
  const lists = useLists()
  const segments = useSegments()
  return (
    <Paper withBorder p="md" bg="var(--panel)" component="section" aria-label="In short">
      <Stack gap="xs">
        {(['email', 'sms', 'push'] as const).map((c) => (
          <Fact key={c} label={channelTitle(c)}>
            <StatusText status={person.statuses[c]} />
          </Fact>
        ))}
        <Fact label="Engagement">
          <Text size="sm" className="numbers">
            {count(person.engagement_score)} of 100
          </Text>
        </Fact>
        <Fact label="Last event">
          <Text size="sm" title={person.last_event_at ? instant(person.last_event_at) : undefined}>
            {person.last_event_at ? ago(person.last_event_at, Date.now()) : 'never'}
          </Text>
        </Fact>
        <Fact label="Known since">
          <Text size="sm" title={instant(person.created_at)}>
            {date(person.created_at)}
          </Text>
        </Fact>
        {person.tags.length > 0 && (
          <Fact label="Tags">
            <Text size="sm">{person.tags.join(', ')}</Text>
          </Fact>
        )}
        <Fact label="Segments">
          {person.segments === null ? (
            <Text size="sm">not known at present</Text>
          ) : person.segments.length === 0 ? (
            <Text size="sm">none</Text>
          ) : (
            person.segments.map((id) => (
              <Text key={id} size="sm">
                <AnchorLink to="/people/$id" params={{ id: person.profile_id }} search={{ tab: 'segments', why: id }} size="sm">
                  {segments.data?.find((s) => s._id === id)?.name ?? id}
                </AnchorLink>
              </Text>
            ))
          )}
        </Fact>
        <Fact label="Lists">
          {person.lists.length === 0 ? (
            <Text size="sm">none</Text>
          ) : (
            person.lists.map((id) => {
              const list = lists.data?.find((l) => l._id === id)
              return (
                <Group key={id} gap={4} justify="flex-end" wrap="nowrap">
                  <AnchorLink to="/lists/$id" params={{ id }} size="sm" ta="right" style={{ overflowWrap: 'anywhere' }}>
                    {list?.name ?? id}
                  </AnchorLink>
                  {list && may('lists:write') && (
                    <button type="button" className="plain" aria-label={`Take off ${list.name}`} onClick={() => void acts.removeFromList(list)}>
                      <Icon name="x" size={12} />
                    </button>
                  )}
                </Group>
              )
            })
          )}
        </Fact>
        <Group justify="flex-end">
          <AsOf at={person.as_of} />
        </Group>
      </Stack>
    </Paper>
  )
}
