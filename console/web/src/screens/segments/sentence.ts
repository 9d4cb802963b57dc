import { isNumberText } from '@/shared/json'
import { channelNames, consentNames, countNames, fieldOf, fnNames, opNames } from './fields'
import type { Activity, Compare, Group, Node, Test, Value } from './model'

/** A condition in words, for lists, explanations and questions. */

/** Names of lists and segments by their ids. */
export type Names = (kind: 'list' | 'segment', id: string) => string | undefined

const quoted = (v: Value) => (v.type === 'text' ? `“${v.text}”` : v.text)
const listed = (parts: string[], and: string) => (parts.length < 2 ? (parts[0] ?? '…') : `${parts.slice(0, -1).join(', ')} ${and} ${parts.at(-1)}`)

function constants(values: string[], op: string): string {
  switch (op) {
    case 'exists':
    case 'not_exists':
      return ''
    case 'between':
      return ` ${values[0] ?? '…'} and ${values[1] ?? '…'}`
    case 'in':
    case 'not_in':
      return ` ${values.length > 4 ? `${values.slice(0, 3).join(', ')} and ${values.length - 3} more` : listed(values, 'or')}`
    case 'in_last_days':
    case 'not_in_last_days':
      return ` ${days(values[0] ?? '…')}`
    default:
      return ` ${values[0] || '…'}`
  }
}

const days = (n: string) => (isNumberText(n) && Number(n) === 1 ? '1 day' : `${n} days`)

export const testSentence = (t: Test, name = t.path) => `${name || '…'} ${opNames[t.op]}${constants(t.values.map(quoted), t.op)}`

function compareSentence(c: Compare, unit: string): string {
  return `${countNames[c.op] ?? c.op}${constants(c.values, c.op)}${unit}`
}

function activitySentence(n: Activity): string {
  const once = n.compare.op === '>=' && Number(n.compare.values[0]) === 1
  const out = [n.did ? 'did' : 'did not do', n.event || '…']
  if (n.aggregate) out.push(`with ${fnNames[n.aggregate.fn]} of ${n.aggregate.property || '…'} ${compareSentence(n.compare, '')}`)
  else if (!once) out.push(compareSentence(n.compare, Number(n.compare.values[0]) === 1 && n.compare.values.length === 1 ? ' time' : ' times'))
  if (n.lastDays !== null) out.push(`in the last ${days(n.lastDays)}`)
  if (n.where.length > 0) out.push(`where ${listed(n.where.map((f) => testSentence(f)), 'and')}`)
  return out.join(' ')
}

const joined = (g: Group, names: Names): string => g.conditions.map((c) => (c.kind === 'group' && g.conditions.length > 1 ? `(${sentence(c, names)})` : sentence(c, names))).join(g.match === 'all' ? ' and ' : ' or ')

export function sentence(n: Node, names: Names = () => undefined): string {
  switch (n.kind) {
    case 'group':
      return `${n.includeAnonymous ? 'anonymous or not, ' : ''}${joined(n, names)}`
    case 'activity':
      return activitySentence(n)
    case 'attribute':
      return testSentence(n.test, fieldOf(n.test.path).label.replace(/^attributes\./, ''))
    case 'consent':
      return `is ${consentNames[n.status] ?? n.status} ${channelNames[n.channel] ?? n.channel}${n.since ? ` since ${n.since.slice(0, 10)}` : ''}${n.until ? ` until ${n.until.slice(0, 10)}` : ''}`
    case 'list':
      return `is ${n.member ? '' : 'not '}on the list ${names('list', n.of) ?? (n.of || '…')}`
    case 'segment':
      return `is ${n.member ? '' : 'not '}in the segment ${names('segment', n.of) ?? (n.of || '…')}`
  }
}
