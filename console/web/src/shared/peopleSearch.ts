import { oneOf, text, texts } from './search'

export const statuses = ['Subscribed', 'Pending', 'Engaged', 'At risk', 'Unsubscribed', 'Bounced', 'Complained', 'Suppressed'] as const
export const channels = ['email', 'sms', 'push', 'whatsapp', 'im', 'in_app'] as const
export const sorts = ['match', 'newest', 'oldest', 'last_event'] as const

/** What a list of people shows, as it is in the address. */
export const peopleSearch = {
  q: text,
  segment: text,
  list: text,
  status: oneOf(...statuses),
  /** The channel of the status. */
  channel: oneOf(...channels),
  sort: oneOf(...sorts),
  columns: texts,
}

export interface PeopleSearch {
  q?: string
  segment?: string
  list?: string
  status?: (typeof statuses)[number]
  channel?: (typeof channels)[number]
  sort?: (typeof sorts)[number]
  columns?: string[]
}
