import { useQuery } from '@tanstack/react-query'
import { api, data, whole, type Schemas } from '@/shared/api/client'
import { allPages } from '@/shared/api/pages'
import { useMay } from '@/shared/api/session'
import type { Names } from './sentence'

/** What there is to choose from. It is read from the state of the server; nothing is scanned for it. */

const minute = 60_000

export function useCatalog() {
  const may = useMay()
  return useQuery({ queryKey: ['catalog'], queryFn: () => data(api.GET('/console/api/v1/catalog')), enabled: may('events:read'), staleTime: minute / 4 })
}

/** The event types that are offered: those that nobody hid. */
export const offered = (types: Schemas['EventType'][] | undefined) => (types ?? []).filter((t) => !t.hidden)

/** The properties of an event type that there is. */
export function useEventType(key: string) {
  const catalog = useCatalog()
  return useQuery({
    queryKey: ['catalog', key],
    queryFn: () => data(api.GET('/console/api/v1/catalog/{id}', { params: { path: { id: key } } })),
    enabled: catalog.data?.some((t) => t.key === key) ?? false,
    staleTime: minute / 4,
  })
}

export function useAttributes() {
  const may = useMay()
  return useQuery({ queryKey: ['attributes'], queryFn: () => data(api.GET('/console/api/v1/attributes')), enabled: may('contacts:read'), staleTime: minute / 4 })
}

/** All lists, page by page. */
export function useLists() {
  const may = useMay()
  return useQuery({
    queryKey: ['lists'],
    queryFn: ({ signal }) => allPages((cursor) => whole(api.GET('/console/api/v1/lists', { params: { query: { limit: 1000, cursor } }, signal })), Infinity),
    enabled: may('lists:read'),
  })
}

/** All segments, page by page. */
export function useSegments() {
  return useQuery({
    queryKey: ['segments'],
    queryFn: async ({ signal }) => {
      const out: Schemas['Segment'][] = []
      let cursor: string | undefined
      do {
        const page = await whole(api.GET('/console/api/v1/segments', { params: { query: { limit: 100, cursor } }, signal }))
        out.push(...page.data)
        cursor = page.next ?? undefined
      } while (cursor)
      return out
    },
  })
}

/** Names of lists and segments, as far as they are known. */
export function useNames(): Names {
  const lists = useLists()
  const segments = useSegments()
  return (kind, id) => (kind === 'list' ? lists.data : segments.data)?.find((x) => x._id === id)?.name
}
