import { useQuery } from '@tanstack/react-query'
import { api, whole } from '@/shared/api/client'
import { allPages } from '@/shared/api/pages'
import { useMay } from '@/shared/api/session'

/** All templates, the newest first, without their texts. */
export function useTemplates() {
  const may = useMay()
  return useQuery({
    queryKey: ['templates'],
    queryFn: async ({ signal }) => (await allPages((cursor) => whole(api.GET('/console/api/v1/templates', { params: { query: { limit: 100, cursor } }, signal })))).reverse(),
    enabled: may('templates:read'),
    staleTime: 15_000,
  })
}
