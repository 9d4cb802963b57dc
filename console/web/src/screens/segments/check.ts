import { isNumberText } from '@/shared/json'
import type { Fault, FaultPlace } from './faultWords'
import { fieldOf, typeOf } from './fields'
import { type Activity, type Group, type Node, type Test } from './model'

/** What is still missing or cannot be meant, by the id of its node; the place is "" for what is only missing. The server checks the rest. */
export type Problems = Map<string, Fault>

const time = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/

const eventType = /^[a-z0-9]+(_[a-z0-9]+)*$/
const emptyKey = /^\.|\.\.|\.$/
const mostDays = 36_500

const missing = (text: string): Fault => ({ place: '', text })
const wrong = (place: FaultPlace, text: string): Fault => ({ place, text })

function daysFault(text: string, place: FaultPlace): Fault | null {
  if (!isNumberText(text.trim())) return wrong(place, 'Give a number of days.')
  if (!(Number(text) > 0)) return wrong(place, 'The number of days must be greater than 0.')
  return Number(text) > mostDays ? wrong(place, 'The number of days must be at most 36,500.') : null
}

/** path and value are the places of a test's inputs. */
function ofTest(t: Test, what: 'a field' | 'a property', path: FaultPlace, value: FaultPlace): Fault | null {
  if (!t.path) return missing(`Name ${what}.`)
  if (emptyKey.test(t.path)) return wrong(path, 'A name beside a dot is missing.')
  if (what === 'a field' && fieldOf(t.path).type === 'any' && !/^(geo|attributes)\../.test(t.path)) return wrong(path, 'Choose a field, or name one that begins with geo. or attributes.')
  const type = typeOf(what === 'a field' ? fieldOf(t.path).type : 'any', t.op)
  if (t.values.length === 0 && (t.op === 'in' || t.op === 'not_in')) return missing('Give at least one value.')
  for (const v of t.values) {
    if (type === 'time') {
      if (!time.test(v.text)) return v.text === '' ? missing('Give a date, such as 2026-01-31.') : wrong(value, 'Give a date, such as 2026-01-31.')
    } else if (v.text.trim() === '' && (v.type === 'number' || v.text === '')) {
      return missing(v.type === 'number' || type === 'number' ? 'Give a number.' : 'Give a value.')
    } else if (v.type === 'number' && !isNumberText(v.text.trim())) {
      return wrong(value, 'Give a number, with a point before decimals.')
    }
    const fault = t.op === 'in_last_days' || t.op === 'not_in_last_days' ? daysFault(v.text, value) : null
    if (fault) return fault
  }
  return t.op === 'between' && outOfOrder(t.values.map((v) => v.text), t.values.every((v) => v.type === 'number')) ? wrong(value, 'The first value must not be above the second.') : null
}

function outOfOrder([low = '', high = '']: string[], numbers: boolean): boolean {
  // The server compares numbers digit by digit, and texts in its own order: what is doubtful here is left to it.
  return numbers && Number(low) > Number(high)
}

function ofCompare({ aggregate, compare: { op, values } }: Activity): Fault | null {
  const whole = !aggregate
  if (values.length === 0) return missing('Give a number to compare with.')
  for (const v of values) {
    if (!isNumberText(v.trim())) return wrong('number', 'Give a number to compare with.')
    if (whole && Number(v) < 0) return wrong('number', 'The number must not be negative.')
    if (whole && !Number.isInteger(Number(v))) return wrong('number', 'The number must be a whole number.')
  }
  return op === 'between' && outOfOrder(values, true) ? wrong('number', 'The first number must not be above the second.') : null
}

function ofNode(n: Node): Fault | null {
  switch (n.kind) {
    case 'group':
      return n.conditions.length === 0 ? missing('A group needs at least one condition.') : null
    case 'activity': {
      if (!n.event) return missing('Name an event.')
      if (!eventType.test(n.event)) return wrong('event', 'An event type is in lower case, with words joined by underscores, such as item_purchased.')
      const days = n.lastDays === null ? null : daysFault(n.lastDays, 'days')
      if (days) return days
      if (n.aggregate && !n.aggregate.property) return missing('Name the property that is added up or compared.')
      if (n.aggregate && emptyKey.test(n.aggregate.property)) return wrong('property', 'A name beside a dot is missing.')
      const compared = ofCompare(n)
      if (compared) return compared
      for (const [i, f] of n.where.entries()) {
        const fault = ofTest(f, 'a property', `filter ${i} property`, `filter ${i} value`)
        if (fault) return fault
      }
      return null
    }
    case 'attribute':
      return ofTest(n.test, 'a field', 'field', 'value')
    case 'list':
      return n.of ? null : missing('Choose a list.')
    case 'segment':
      return n.of ? null : missing('Choose a segment.')
    case 'consent':
      for (const at of [n.since, n.until]) if (at && !time.test(at)) return wrong('date', 'Give a date, such as 2026-01-31.')
      return n.since && n.until && Date.parse(n.until) <= Date.parse(n.since) ? wrong('date', 'The second date must be after the first one.') : null
  }
}

export function check(root: Group): Problems {
  const out: Problems = new Map()
  const visit = (n: Node) => {
    const fault = ofNode(n)
    if (fault) out.set(n.id, fault)
    if (n.kind === 'group') n.conditions.forEach(visit)
  }
  visit(root)
  return out
}
