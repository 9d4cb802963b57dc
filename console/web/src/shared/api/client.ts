import createClient, { type Middleware } from 'openapi-fetch'
import { writeJson } from '@/shared/json'
import { serverIsGone } from './connection'
import { ApiError } from './errors'
import type { components, paths } from './schema'

export type Schemas = components['schemas']

/** The token that calls need which change something; a session in a cookie has one. */
let csrf = ''
export function setCSRF(token: string) {
  csrf = token
}

let onSignedOut = () => {}
/** Says what happens when a call finds the session over. */
export function whenSignedOut(fn: () => void) {
  onSignedOut = fn
}

const guard: Middleware = {
  onRequest({ request }) {
    if (request.method !== 'GET' && request.method !== 'HEAD' && csrf) request.headers.set('X-CSRF-Token', csrf)
    return request
  },
}

async function send(request: Request): Promise<Response> {
  try {
    return await fetch(request)
  } catch (e) {
    if (request.signal.aborted || (e instanceof DOMException && e.name === 'AbortError')) throw e
    serverIsGone()
    throw new ApiError(0, 'The server does not answer. Trying again by itself.')
  }
}

/** The API by path, typed by the server's own document: api.GET('/console/api/v1/segments'). */
export const api = createClient<paths>({ baseUrl: '', fetch: send, bodySerializer: (body) => writeJson(body), credentials: 'same-origin' })
api.use(guard)

interface Answer<Body> {
  data?: Body
  error?: unknown
  response: Response
}

/** The whole body of an answer: data, message, next. What is no success is thrown as an ApiError. */
export async function whole<Body>(call: Promise<Answer<Body>>): Promise<Body> {
  const { data, error, response } = await call
  if (response.ok && data !== undefined) return data
  const said = (typeof error === 'object' && error !== null ? error : {}) as { message?: string; data?: { field?: string } }
  const wrong = new ApiError(response.status, said.message || `The server answers ${response.status} ${response.statusText}`, said.data?.field ?? '', Number(response.headers.get('Retry-After') ?? 0))
  // Only a server that is starting or stopping answers 503 without an envelope of ours.
  if (wrong.unavailable && !said.message) serverIsGone()
  if (wrong.signedOut && !response.url.includes('/session')) onSignedOut()
  throw wrong
}

/** The data of an answer. */
export const data = async <Body extends { data?: unknown }>(call: Promise<Answer<Body>>): Promise<NonNullable<Body['data']>> => (await whole(call)).data as NonNullable<Body['data']>
