import { api } from '@/shared/api/client'
import { ApiError } from '@/shared/api/errors'
import { parseJson, writeJson, type Json } from '@/shared/json'
import type { Stored } from './log'

/** Events that are read at most of the time of a broken connection. */
export const mostMissed = 1000

/** Seconds that the API looks back at most. */
export const farthest = 86_400

type Found = Omit<Stored, 'kind' | 'key' | 'outcome' | 'transitions' | 'late'>

/** The events of the last seconds, the oldest first, and how many there are in all. */
export async function readMissed(lastSeconds: number, types: string[], signal: AbortSignal): Promise<{ events: Found[]; total: number }> {
  // As text first: numbers keep every digit.
  const { data, error, response } = await api.GET('/console/api/v1/events/recent', { params: { query: { last_seconds: Math.min(farthest, Math.max(1, Math.ceil(lastSeconds))), limit: mostMissed, ...(types.length > 0 && { event_type: types.join(',') }) } }, parseAs: 'text', signal })
  if (!response.ok || typeof data !== 'string') throw new ApiError(response.status, (error as { message?: string } | undefined)?.message ?? `The server answers ${response.status}`)
  const exact = (parseJson(data) as unknown as { data: { events: Json[] } }).data.events
  const { events, total } = (JSON.parse(data) as { data: { events: Omit<Found, 'text'>[]; total: number } }).data
  return { events: events.map((e, i) => ({ ...e, text: writeJson(exact[i]!) })).reverse(), total }
}
