import type { Schemas } from '@/shared/api/client'
import { count, date, instant } from '@/shared/format'
import { parseJson } from '@/shared/json'
import { fromJson } from './definition'
import type { Node } from './model'

export type Explained = Schemas['ExplainedNode']

/** The condition of an explained node, for a sentence; null when the form cannot read it. */
export function conditionOf(n: Explained): Node | null {
  try {
    return fromJson(parseJson(JSON.stringify(n.condition)))
  } catch {
    return null
  }
}

const shown = (v: unknown) => (typeof v === 'string' ? `“${v}”` : typeof v === 'number' ? count(v) : JSON.stringify(v))

/** The facts behind the answer of a condition, in words. */
export function factsOf(n: Explained): string {
  const f = n.facts
  if (n.kind === 'group') return ''
  if (!f) return 'Too many events to list the facts; the answer is exact all the same.'
  switch (n.kind) {
    case 'activity': {
      const since = f.window_start ? ` since ${instant(f.window_start)}` : ''
      const events = f.matching_events ?? 0
      if (events === 0) return `No matching event${since}.`
      const last = f.newest_at ? `, the last on ${instant(f.newest_at)}` : ''
      const made = f.values === undefined ? '' : f.value === null || f.value === undefined ? '; none has a number there' : `; the value is ${shown(f.value)}, of ${count(f.values)} values`
      return `${count(events)} matching ${events === 1 ? 'event' : 'events'}${since}${last}${made}.`
    }
    case 'attribute':
      if (f.value_bytes) return `The value is too long to be shown (${count(f.value_bytes)} bytes).`
      return f.value === null || f.value === undefined || (Array.isArray(f.value) && f.value.length === 0) ? 'It has no value.' : `It is ${Array.isArray(f.value) ? f.value.map(shown).join(', ') : shown(f.value)}.`
    case 'consent':
      return `The person is ${f.status?.replaceAll('_', ' ') ?? 'unknown'}${f.subscribed_at ? `, subscribed on ${date(f.subscribed_at)}` : ''}.`
    case 'list':
      return f.member ? 'The person is on it.' : 'The person is not on it.'
    case 'segment':
      return f.name === null ? 'This segment does not exist.' : f.member ? 'The person is a member.' : 'The person is not a member.'
  }
}

/** The conditions that decide: those whose answer is that of the whole. */
export function deciding(n: Explained): boolean[] {
  const conditions = n.conditions ?? []
  const decided = n.match === 'all' ? !n.holds : n.holds
  return conditions.map((c) => (decided ? c.holds === n.holds : true))
}
