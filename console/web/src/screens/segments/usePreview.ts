import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api, data } from '@/shared/api/client'
import { toJson } from './definition'
import type { Group } from './model'
import { places } from './tree'

/**
 * The exact answer of the server to a definition while it is edited. A newer definition
 * cancels the older question. text is the definition as JSON, which tells questions apart;
 * null asks nothing and keeps the last answer.
 */
export function usePreview(root: Group, text: string | null, segmentId: string) {
  return useQuery({
    queryKey: ['preview', segmentId, text],
    queryFn: async ({ signal }) => {
      const answer = await data(api.POST('/console/api/v1/segments/preview', { body: { definition: toJson(root) as never, ...(segmentId && { segment_id: segmentId }) }, signal }))
      return { text, answer, places: places(root) }
    },
    enabled: text !== null,
    placeholderData: keepPreviousData,
    gcTime: 60_000,
    staleTime: 1000,
  })
}

export type Preview = NonNullable<ReturnType<typeof usePreview>['data']>['answer']

/** The counts of each node. Those of an older definition go with its nodes. */
export function countsOf(root: Group, now: string | null, of: ReturnType<typeof usePreview>['data']): Map<string, { count: number; without: number }> {
  const out = new Map<string, { count: number; without: number }>()
  if (!of) return out
  const at = of.text === now ? places(root) : of.places
  for (const p of of.answer.parts) {
    const node = at.get(p.path)
    if (node) out.set(node.id, p)
  }
  return out
}
