import type { Fn, Op, ValueType } from './model'

/** The fields of a person that the service keeps, and which operators fit which values. */

export type FieldType = 'text' | 'number' | 'boolean' | 'time' | 'word' | 'any'

export interface Field {
  path: string
  label: string
  type: FieldType
  /** The only values of a word. */
  words?: readonly string[]
}

export const channels = ['email', 'sms', 'push', 'whatsapp', 'im', 'in_app'] as const
export const channelNames: Record<string, string> = { email: 'e-mail', sms: 'SMS', push: 'push', whatsapp: 'WhatsApp', im: 'IM', in_app: 'in-app' }
export const statuses = ['Pending', 'Subscribed', 'Engaged', 'At risk', 'Unsubscribed', 'Bounced', 'Complained', 'Suppressed'] as const
export const consentStatuses = ['subscribed', 'pending', 'unsubscribed', 'never_subscribed'] as const
export const consentNames: Record<string, string> = { subscribed: 'subscribed to', pending: 'asked to confirm', unsubscribed: 'unsubscribed from', never_subscribed: 'never subscribed to' }

export const kept: Field[] = [
  { path: 'email', label: 'E-mail', type: 'text' },
  { path: 'phone', label: 'Phone', type: 'text' },
  { path: 'external_id', label: 'External id', type: 'text' },
  { path: 'first_name', label: 'First name', type: 'text' },
  { path: 'last_name', label: 'Last name', type: 'text' },
  { path: 'tags', label: 'Tags', type: 'text' },
  { path: 'created_at', label: 'Created', type: 'time' },
  { path: 'first_seen_at', label: 'First seen', type: 'time' },
  { path: 'last_event_at', label: 'Last event', type: 'time' },
  { path: 'event_count', label: 'Number of events', type: 'number' },
  { path: 'engagement_score', label: 'Engagement score', type: 'number' },
  { path: 'subscribed', label: 'Subscribed (e-mail)', type: 'boolean' },
  { path: 'push_devices', label: 'Kinds of devices', type: 'word', words: ['webpush', 'fcm', 'apns'] },
  { path: 'status', label: 'Status (e-mail)', type: 'word', words: statuses },
  ...channels.map((c): Field => ({ path: `status.${c}`, label: `Status (${channelNames[c]})`, type: 'word', words: statuses })),
  ...channels.map((c): Field => ({ path: `suppressed.${c}`, label: `Suppressed (${channelNames[c]})`, type: 'boolean' })),
]

const free: Field = { path: '', label: '', type: 'any' }
export const fieldOf = (path: string): Field => kept.find((f) => f.path === path) ?? { ...free, path, label: path }

const text: Op[] = ['=', '!=', 'in', 'not_in', 'contains', 'not_contains', 'starts_with', 'ends_with', 'exists', 'not_exists', '>', '>=', '<', '<=', 'between']
const number: Op[] = ['=', '!=', '>', '>=', '<', '<=', 'between', 'in', 'not_in']
const time: Op[] = ['in_last_days', 'not_in_last_days', 'before', 'after', 'between', 'exists', 'not_exists', '=', '!=', '>', '>=', '<', '<=']
const any: Op[] = ['=', '!=', '>', '>=', '<', '<=', 'between', 'in', 'not_in', 'contains', 'not_contains', 'starts_with', 'ends_with', 'exists', 'not_exists', 'in_last_days', 'not_in_last_days', 'before', 'after']

/** The operators that a field takes, the likeliest first. The present one is always among them. */
export function opsOf(type: FieldType, present: Op): Op[] {
  const list = { text, number, time, any, boolean: ['=', '!='] as Op[], word: ['=', '!=', 'in', 'not_in', 'exists', 'not_exists'] as Op[] }[type]
  return list.includes(present) ? list : [...list, present]
}

export const countOps: Op[] = ['>=', '>', '=', '!=', '<=', '<', 'between', 'in', 'not_in']

/** Which type of constant a field and an operator take; undefined where any fits. */
export function typeOf(type: FieldType, op: Op): ValueType | 'time' | undefined {
  if (op === 'in_last_days' || op === 'not_in_last_days') return 'number'
  if (op === 'before' || op === 'after' || type === 'time') return 'time'
  if (['contains', 'not_contains', 'starts_with', 'ends_with'].includes(op)) return 'text'
  return type === 'any' ? undefined : type === 'word' ? 'text' : type
}

export const opNames: Record<Op, string> = {
  '=': 'is', '!=': 'is not', '>': 'is more than', '>=': 'is at least', '<': 'is less than', '<=': 'is at most', in: 'is one of', not_in: 'is none of',
  contains: 'contains', not_contains: 'does not contain', starts_with: 'starts with', ends_with: 'ends with', exists: 'is known', not_exists: 'is not known', between: 'is between',
  before: 'is before', after: 'is after', in_last_days: 'is in the last', not_in_last_days: 'is not in the last',
}

export const countNames: Record<string, string> = { '>=': 'at least', '>': 'more than', '=': 'exactly', '!=': 'not exactly', '<=': 'at most', '<': 'fewer than', between: 'between', in: 'one of', not_in: 'none of' }

export const fnNames: Record<Fn, string> = { sum: 'the sum', avg: 'the average', min: 'the lowest', max: 'the highest', distinct: 'the number of different values' }
