import { api } from '@/shared/api/client'
import { ApiError } from '@/shared/api/errors'
import { parseJson, type Json } from '@/shared/json'

interface Saved {
  _id: string
  name: string
  definition: Json
  /** Names this content, to be told when another one is saved meanwhile. */
  version: string
  updated_at: string
}

/** A segment with its definition digit by digit. */
export async function readSegment(id: string, signal?: AbortSignal): Promise<Saved> {
  const { data, error, response } = await api.GET('/console/api/v1/segments/{id}', { params: { path: { id } }, parseAs: 'text', signal })
  if (!response.ok || typeof data !== 'string') {
    const said = (error ?? {}) as { message?: string }
    throw new ApiError(response.status, said.message ?? `The server answers ${response.status}`)
  }
  return (parseJson(data) as unknown as { data: Saved }).data
}
