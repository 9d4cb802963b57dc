import { useQuery } from '@tanstack/react-query'
import { api, data, type Schemas } from '@/shared/api/client'
import { ApiError } from '@/shared/api/errors'
import { parseJson, type Json } from '@/shared/json'
import { startOf, type Granularity } from '@/shared/spans'

export type Segment = Schemas['Segment']
export type By = Granularity

/** All that is read of one segment has a key that begins with 'segment' and its id. */

/** While the segment is being built its progress is read again and again. */
export const useSegmentRecord = (id: string) =>
  useQuery({
    queryKey: ['segment', id, 'record'],
    queryFn: ({ signal }) => data(api.GET('/console/api/v1/segments/{id}', { params: { path: { id } }, signal })),
    refetchInterval: (q) => (q.state.data?.status === 'building' ? 1000 : false),
  })

const day = 86_400_000

/** The spans that make a readable chart of a segment of this age. */
export function usualSpan(createdAt: string, now: number): By {
  const age = now - new Date(createdAt).getTime()
  return age < 4 * day ? 'hour' : age < 200 * day ? 'day' : age < 1500 * day ? 'week' : 'month'
}

export const useGrowth = (id: string, by: By | undefined) =>
  useQuery({ queryKey: ['segment', id, 'growth', by], queryFn: ({ signal }) => data(api.GET('/console/api/v1/segments/{id}/growth', { params: { path: { id }, query: { granularity: by } }, signal })), enabled: by !== undefined })

export interface Version {
  _id: number
  at: string
  by: Schemas['ChangedBy']
  name: string
  /** Digit by digit; null for one that was too long to be kept. */
  definition: Json
}

/** The newest hundred definitions that the segment had. */
export const useVersions = (id: string) =>
  useQuery({
    queryKey: ['segment', id, 'versions'],
    queryFn: async ({ signal }) => {
      const { data, error, response } = await api.GET('/console/api/v1/segments/{id}/versions', { params: { path: { id }, query: { limit: 100 } }, parseAs: 'text', signal })
      if (!response.ok || typeof data !== 'string') throw new ApiError(response.status, (error as { message?: string } | undefined)?.message ?? `The server answers ${response.status}`)
      const exact = (parseJson(data) as { data: { definition: Json }[] }).data
      return (JSON.parse(data) as { data: Omit<Version, 'definition'>[] }).data.map((v, i): Version => ({ ...v, definition: exact[i]!.definition }))
    },
  })

const fewest = 4 // spans of a chart

/** A young segment's series with spans before it, in which it had no members, so that the chart is one. */
export function drawable(series: Schemas['SegmentGrowth'][], by: By): Schemas['SegmentGrowth'][] {
  const out = [...series]
  while (out.length > 0 && out.length < fewest) out.unshift({ start: new Date(startOf(Date.parse(out[0]!.start) - 1, by)).toISOString(), entered: 0, left: 0, members: 0 })
  return out
}
