import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { api, data, whole, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import type { PeopleSearch } from '@/shared/peopleSearch'

export type PersonRow = Schemas['ProfileRow']

/** Pages of people by a search. A page may be empty and lead on. */
export function usePeople({ q, segment, list, status, channel, sort }: PeopleSearch) {
  const query = { q, segment_id: segment, list_id: list, status, channel: status && channel, sort: sort === 'match' && !q ? undefined : sort, limit: 100 }
  return useInfiniteQuery({
    queryKey: ['people', query],
    queryFn: ({ pageParam, signal }) => whole(api.GET('/console/api/v1/profiles/search', { params: { query: { ...query, cursor: pageParam } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
    refetchOnWindowFocus: false,
  })
}

/** All flows, page by page. */
export function useFlows() {
  const may = useMay()
  return useQuery({
    queryKey: ['flows', 'all'],
    queryFn: async ({ signal }) => {
      const out: Schemas['Flow'][] = []
      let cursor: string | undefined
      do {
        const page = await whole(api.GET('/console/api/v1/flows', { params: { query: { limit: 100, cursor } }, signal }))
        out.push(...page.data)
        cursor = page.next ?? undefined
      } while (cursor)
      return out
    },
    enabled: may('flows:read'),
  })
}

/** A person by id. All that is read of one person has a key that begins like this one. */
export const usePerson = (id: string) => useQuery({ queryKey: ['person', id, 'profile'], queryFn: ({ signal }) => data(api.GET('/console/api/v1/profiles/{id}', { params: { path: { id } }, signal })) })

export type Person = Schemas['Profile']
