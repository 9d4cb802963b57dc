import { Text } from '@mantine/core'
import { ago, count, instant } from '@/shared/format'
import type { Column } from '@/shared/PeopleTable'
import type { PeopleSearch } from '@/shared/peopleSearch'
import { StatusText } from './StatusText'
import type { PersonRow } from './usePeople'
import { channelName } from './words'

const first = (values: string[]) => (
  <Text size="sm" truncate title={values.join(', ')}>
    {values[0] ?? '–'}
    {values.length > 1 && (
      <Text span size="xs" c="dimmed">
        {' '}
        +{values.length - 1}
      </Text>
    )}
  </Text>
)

const when = (at: string | null) =>
  at ? (
    <Text size="sm" title={instant(at)}>
      {ago(at, Date.now())}
    </Text>
  ) : (
    <Text size="sm" c="dimmed">
      never
    </Text>
  )

/** The columns to choose from, by the name that the address has. */
export const columnLabels: Record<string, string> = {
  email: 'E-mail',
  external_id: 'External id',
  phone: 'Phone',
  status: 'Status',
  engagement: 'Engagement',
  tags: 'Tags',
  lists: 'Lists',
  first_seen: 'First seen',
  last_event: 'Last event',
  created: 'Created',
}

export const usualColumns = ['external_id', 'status', 'engagement', 'last_event', 'created']

export function columnsOf({ columns = usualColumns, channel = 'email' }: PeopleSearch, listName: (id: string) => string): Column<PersonRow>[] {
  const all: Record<string, Column<PersonRow>> = {
    email: { label: 'E-mail', render: (p) => first(p.identities.email) },
    external_id: { label: 'External id', render: (p) => first(p.identities.external_id) },
    phone: { label: 'Phone', render: (p) => first(p.identities.phone) },
    status: { label: channel === 'email' ? 'Status' : `Status: ${channelName(channel)}`, width: 140, render: (p) => <StatusText status={p.statuses[channel]} /> },
    engagement: { label: 'Engagement', width: 110, render: (p) => <Text size="sm" className="numbers">{count(p.engagement_score)}</Text> },
    tags: { label: 'Tags', render: (p) => first(p.tags) },
    lists: { label: 'Lists', render: (p) => first(p.lists.map(listName)) },
    first_seen: { label: 'First seen', width: 130, render: (p) => when(p.first_seen_at) },
    last_event: { label: 'Last event', width: 130, render: (p) => when(p.last_event_at) },
    created: { label: 'Created', width: 130, render: (p) => when(p.created_at) },
  }
  return columns.flatMap((c) => all[c] ?? [])
}
