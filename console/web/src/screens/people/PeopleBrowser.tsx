import { Button, Checkbox, Group, NativeSelect, Paper, Popover, Stack, Text, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useEffect, useMemo, type ReactNode } from 'react'
import { AsOf } from '@/shared/AsOf'
import { count } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { PeopleTable } from '@/shared/PeopleTable'
import { Empty, Failed, Loading } from '@/shared/states'
import { useSegments } from '../segments/useSuggestions'
import { columnLabels, columnsOf, usualColumns } from './columns'
import { channels, sorts, statuses, type PeopleSearch } from '@/shared/peopleSearch'
import { useLists } from '../segments/useSuggestions'
import { usePeople } from './usePeople'
import { channelTitle } from './words'

const sortNames = { match: 'Best match first', newest: 'Newest first', oldest: 'Oldest first', last_event: 'Latest event first' }

/** Pages that are read without being asked for when few people are found. */
const patience = 25

/**
 * People with search, filters and columns, page by page. `fixed` are filters that the
 * screen itself makes; they are not offered.
 */
export function PeopleBrowser({ search, onSearch, fixed = {}, label, empty, count: total, renderAction, maxHeight = 'calc(100vh - 260px)' }: {
  search: PeopleSearch
  onSearch: (change: PeopleSearch) => void
  fixed?: Pick<PeopleSearch, 'segment' | 'list'>
  label: string
  /** What is shown when nobody is there and no filter is set. */
  empty: ReactNode
  /** How many there are without q and status, if it is known. */
  count?: { n: number; at: string }
  /** An action at the end of each row. */
  renderAction?: (profileId: string, name: string) => ReactNode
  maxHeight?: number | string
}) {
  const [q] = useDebouncedValue(search.q, 120)
  const people = usePeople({ ...search, q, ...fixed })
  const segments = useSegments()
  const lists = useLists()
  const rows = useMemo(() => people.data?.pages.flatMap((p) => p.data) ?? [], [people.data])
  const pages = people.data?.pages.length ?? 0
  const { hasNextPage, isFetchingNextPage, isPlaceholderData, fetchNextPage } = people
  const more = hasNextPage && !isFetchingNextPage && !isPlaceholderData
  useEffect(() => {
    if (more && rows.length < 25 && pages < patience) void fetchNextPage()
  }, [more, rows.length, pages, fetchNextPage])
  const shown = search.columns ?? usualColumns
  const columns = columnsOf({ ...search, columns: shown }, (id) => lists.data?.find((l) => l._id === id)?.name ?? id)
  if (renderAction) columns.push({ label: '', width: 56, render: (p) => renderAction(p.profile_id, p.first_name || p.profile_id) })
  const filtered = Boolean(search.q || search.status || (!fixed.segment && search.segment) || (!fixed.list && search.list))
  return (
    <Stack gap="sm">
      <Group gap="xs" align="flex-end" role="search" aria-label={label}>
        <TextInput
          flex="1 1 220px"
          maw={360}
          label="Search"
          placeholder="Name, e-mail, id or phone"
          value={search.q ?? ''}
          onChange={(e) => onSearch({ q: e.currentTarget.value || undefined, ...(search.sort === 'match' && { sort: undefined }) })}
          leftSection={<Icon name="search" size={14} />}
        />
        {!fixed.segment && segments.data && segments.data.length > 0 && (
          <NativeSelect label="Segment" maw={180} value={search.segment ?? ''} onChange={(e) => onSearch({ segment: e.currentTarget.value || undefined })} data={[{ value: '', label: 'Any' }, ...segments.data.map((s) => ({ value: s._id, label: s.name }))]} />
        )}
        {!fixed.list && lists.data && lists.data.length > 0 && (
          <NativeSelect label="List" maw={180} value={search.list ?? ''} onChange={(e) => onSearch({ list: e.currentTarget.value || undefined })} data={[{ value: '', label: 'Any' }, ...lists.data.map((l) => ({ value: l._id, label: l.name }))]} />
        )}
        <NativeSelect label="Status" value={search.status ?? ''} onChange={(e) => onSearch({ status: (e.currentTarget.value || undefined) as PeopleSearch['status'] })} data={[{ value: '', label: 'Any' }, ...statuses]} />
        <NativeSelect label="Channel" value={search.channel ?? 'email'} onChange={(e) => onSearch({ channel: e.currentTarget.value === 'email' ? undefined : (e.currentTarget.value as PeopleSearch['channel']) })} data={channels.map((c) => ({ value: c, label: channelTitle(c) }))} />
        <NativeSelect label="Order" value={search.sort ?? (search.q ? 'match' : 'newest')} onChange={(e) => onSearch({ sort: e.currentTarget.value as PeopleSearch['sort'] })} data={sorts.filter((s) => s !== 'match' || search.q).map((s) => ({ value: s, label: sortNames[s] }))} />
        <Popover position="bottom-end" trapFocus>
          <Popover.Target>
            <Button variant="default" leftSection={<Icon name="settings" size={14} />}>
              Columns
            </Button>
          </Popover.Target>
          <Popover.Dropdown>
            <Checkbox.Group aria-label="Columns" value={shown} onChange={(on) => onSearch({ columns: Object.keys(columnLabels).filter((c) => on.includes(c)) })}>
              <Stack gap="xs">
                {Object.entries(columnLabels).map(([key, name]) => (
                  <Checkbox key={key} size="xs" value={key} label={name} />
                ))}
              </Stack>
            </Checkbox.Group>
            <Button mt="sm" size="compact-xs" variant="default" onClick={() => onSearch({ columns: undefined })}>
              Usual columns
            </Button>
          </Popover.Dropdown>
        </Popover>
      </Group>
      {people.isError && rows.length === 0 ? (
        <Failed error={people.error} retry={() => void people.refetch()} />
      ) : people.isPending ? (
        <Loading what="people" />
      ) : rows.length === 0 && (isFetchingNextPage || more) && pages < patience ? (
        <Loading what="people" />
      ) : rows.length === 0 && !hasNextPage ? (
        filtered ? (
          <Empty icon="search" title="No one found" action={<Button variant="default" onClick={() => onSearch({ q: undefined, status: undefined, segment: undefined, list: undefined })}>Clear all filters</Button>}>
            Search looks at the beginning of names, e-mails, external ids and phone numbers.
          </Empty>
        ) : (
          empty
        )
      ) : (
        <>
          <Group justify="space-between" gap="xs">
            <Text size="sm" c="dimmed" aria-live="polite" data-testid="found">
              {hasNextPage ? `The first ${count(rows.length)}` : `${count(rows.length)} ${rows.length === 1 ? 'person' : 'people'}`}
              {total && hasNextPage && !filtered ? ` of ${count(total.n)}` : ''}
            </Text>
            <AsOf at={total && !filtered ? total.at : new Date(people.dataUpdatedAt).toISOString()} />
          </Group>
          <Paper withBorder style={{ opacity: isPlaceholderData ? 0.6 : 1 }}>
            <PeopleTable
              people={rows}
              columns={columns}
              label={label}
              maxHeight={maxHeight}
              minWidth={200 + columns.length * 125}
              onEnd={more ? () => void fetchNextPage() : undefined}
              link={(p, name) => (
                <AnchorLink to="/people/$id" params={{ id: p.profile_id }} size="sm" truncate display="block" maw={320}>
                  {name}
                </AnchorLink>
              )}
            />
          </Paper>
          {people.isFetchNextPageError && <Failed error={people.error} retry={() => void fetchNextPage()} />}
          {isFetchingNextPage && <Loading what="more people" />}
          {more && pages >= patience && rows.length < 25 && (
            <Button variant="default" onClick={() => void fetchNextPage()} style={{ alignSelf: 'flex-start' }}>
              Search on
            </Button>
          )}
        </>
      )}
    </Stack>
  )
}
