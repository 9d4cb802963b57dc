import { isNumberText } from '@/shared/json'
import { fieldOf, typeOf } from './fields'
import { type Group, type Node, type Test } from './model'

/** What is still missing or cannot be meant, by the id of its node. The server checks the rest. */
export type Problems = Map<string, string>

const time = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/

const eventType = /^[a-z0-9]+(_[a-z0-9]+)*$/
const emptyKey = /^\.|\.\.|\.$/

function ofTest(t: Test, what: string): string {
  if (!t.path) return `Name ${what}.`
  if (emptyKey.test(t.path)) return 'A key beside a dot is missing.'
  if (what === 'a field' && fieldOf(t.path).type === 'any' && !/^(geo|attributes)\../.test(t.path)) return 'Choose a field, or name one that begins with geo. or attributes.'
  const type = typeOf(what === 'a field' ? fieldOf(t.path).type : 'any', t.op)
  if (t.values.length === 0 && (t.op === 'in' || t.op === 'not_in')) return 'Give at least one value.'
  for (const v of t.values) {
    if (type === 'time') {
      if (!time.test(v.text)) return 'Give a date, such as 2026-01-31.'
    } else if (v.type === 'number' ? !isNumberText(v.text.trim()) : v.text === '') {
      return v.type === 'number' || type === 'number' ? 'Give a number.' : 'Give a value.'
    }
    if ((t.op === 'in_last_days' || t.op === 'not_in_last_days') && Number(v.text) <= 0) return 'The number of days must be greater than 0.'
  }
  return ''
}

function ofNode(n: Node): string {
  switch (n.kind) {
    case 'group':
      return n.conditions.length === 0 ? 'A group needs at least one condition.' : ''
    case 'activity': {
      if (!n.event) return 'Name an event.'
      if (!eventType.test(n.event)) return 'An event type is in lower case, with words joined by underscores, such as item_purchased.'
      if (n.lastDays !== null && !(isNumberText(n.lastDays.trim()) && Number(n.lastDays) > 0)) return 'The number of days must be greater than 0.'
      if (n.aggregate && (!n.aggregate.property || emptyKey.test(n.aggregate.property))) return 'Name the property that is added up or compared.'
      if (n.compare.values.length === 0 || n.compare.values.some((v) => !isNumberText(v.trim()))) return 'Give a number to compare with.'
      for (const f of n.where) {
        const wrong = ofTest(f, 'a property')
        if (wrong) return wrong
      }
      return ''
    }
    case 'attribute':
      return ofTest(n.test, 'a field')
    case 'list':
      return n.of ? '' : 'Choose a list.'
    case 'segment':
      return n.of ? '' : 'Choose a segment.'
    case 'consent':
      for (const at of [n.since, n.until]) if (at && !time.test(at)) return 'Give a date, such as 2026-01-31.'
      return ''
  }
}

export function check(root: Group): Problems {
  const out: Problems = new Map()
  const visit = (n: Node) => {
    const wrong = ofNode(n)
    if (wrong) out.set(n.id, wrong)
    if (n.kind === 'group') n.conditions.forEach(visit)
  }
  visit(root)
  return out
}
