import { Select, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data } from './api/client'
import { useMay } from './api/session'
import { identifierOf, nameOf } from './person'
import { searchesFor, type Audience } from './somebody'

const few = 20 // people that are offered

const found = (q: string, segment?: string) => ({
  queryKey: ['people', 'search', q, segment ?? ''],
  queryFn: ({ signal }: { signal: AbortSignal }) => data(api.GET('/console/api/v1/profiles/search', { params: { query: { limit: few, ...(q && { q }), ...(segment && { segment_id: segment }) } }, signal })),
  staleTime: 30_000,
})

/** Somebody to show a message to, until a person is chosen: if possible one who would get it. */
export function useSomebody(audience: Audience) {
  const may = useMay()
  const searches = searchesFor(audience)
  const query = useQuery({
    queryKey: ['people', 'somebody', searches],
    queryFn: async ({ signal }) => {
      for (const search of searches) {
        const [person] = await data(api.GET('/console/api/v1/profiles/search', { params: { query: { limit: 1, ...search } }, signal }))
        if (person) return person.profile_id
      }
      return null
    },
    staleTime: 30_000,
    enabled: may('contacts:read'),
  })
  return query.data ?? undefined
}

/** Chooses a person by what an identifier or a name begins with. */
export function PersonPicker({ value, onChange, label, segment }: { value: string | undefined; onChange: (profileId: string) => void; label: string; segment?: string }) {
  const [typed, setTyped] = useState('')
  const [q] = useDebouncedValue(typed, 150)
  const may = useMay()
  const readable = may('contacts:read')
  const people = useQuery({ ...found(q.trim(), q.trim() ? undefined : segment), enabled: readable, placeholderData: keepPreviousData })
  const chosen = useQuery({ queryKey: ['profile', value], queryFn: () => data(api.GET('/console/api/v1/profiles/{id}', { params: { path: { id: value! } } })), enabled: readable && value !== undefined, staleTime: 30_000 })
  const all = [...(people.data ?? [])]
  if (chosen.data && !all.some((p) => p.profile_id === value)) all.unshift(chosen.data as never)
  const label1 = (p: (typeof all)[number]) => (nameOf(p) === identifierOf(p) ? nameOf(p) : `${nameOf(p)} (${identifierOf(p)})`)
  if (!readable)
    return (
      <Text size="xs" c="dimmed">
        To choose a person you need the permission contacts:read.
      </Text>
    )
  return (
    <Select
      size="xs"
      label={label}
      placeholder="E-mail, id, phone or name"
      searchable
      value={value && all.some((p) => p.profile_id === value) ? value : null}
      onChange={(v) => v && onChange(v)}
      onSearchChange={(v) => setTyped(all.some((p) => label1(p) === v) ? '' : v)}
      data={all.map((p) => ({ value: p.profile_id, label: label1(p) }))}
      filter={({ options }) => options}
      nothingFoundMessage={people.isFetching ? 'Searching …' : 'No one found'}
      comboboxProps={{ position: 'bottom-start' }}
    />
  )
}
