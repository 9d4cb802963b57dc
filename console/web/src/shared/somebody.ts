import type { CapturedChannel } from './captured'

/** Whom a message is for. */
export interface Audience {
  channel: CapturedChannel
  segments?: string[]
  lists?: string[]
}

export interface Search {
  segment_id?: string
  list_id?: string
  status?: 'Engaged' | 'Subscribed' | 'At risk'
  channel?: CapturedChannel
}

/** The statuses of people who agreed to get messages. */
const agreed = ['Engaged', 'Subscribed', 'At risk'] as const

const most = 5 // segments and lists of an audience that are looked through

/**
 * Searches for somebody to show a message to, one after the other until one finds somebody: a person of
 * the audience who would get it, then anybody of the audience, then whoever would get it, then anybody.
 */
export function searchesFor({ channel, segments = [], lists = [] }: Audience): Search[] {
  const audience: Search[] = [...segments.map((segment_id) => ({ segment_id })), ...lists.map((list_id) => ({ list_id }))].slice(0, most)
  const reachable = (within: Search) => agreed.map((status) => ({ ...within, status, channel }))
  return [...audience.flatMap(reachable), ...audience, ...reachable({}), {}]
}
