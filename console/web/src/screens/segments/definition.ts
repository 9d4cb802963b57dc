import { isNumberText, JsonNumber, type Json } from '@/shared/json'
import { newId, valuesOf, type Activity, type Attribute, type Compare, type Consent, type Fn, type Group, type Membership, type Node, type Op, type Test, type Value } from './model'

/** Definitions between JSON and the form. Every digit is kept: numbers are texts in between. */

type Fields = { [key: string]: Json }

/** What the form cannot show: the place and the reason. */
export class DefinitionError extends Error {}

const ops: Op[] = ['=', '!=', '>', '>=', '<', '<=', 'in', 'not_in', 'contains', 'not_contains', 'starts_with', 'ends_with', 'exists', 'not_exists', 'between', 'before', 'after', 'in_last_days', 'not_in_last_days']
const fns: Fn[] = ['sum', 'avg', 'min', 'max', 'distinct']

function fail(path: string, reason: string): never {
  throw new DefinitionError(path ? `${path} ${reason}` : `the definition ${reason}`)
}
const at = (path: string, key: string) => (path ? `${path}.${key}` : key)

function object(v: Json | undefined, path: string, ...keys: string[]): Fields {
  if (v === undefined || v === null || typeof v !== 'object' || Array.isArray(v) || v instanceof JsonNumber) return fail(path, 'must be an object')
  for (const key of Object.keys(v)) if (!keys.includes(key)) fail(at(path, key), `is no field here; there are ${keys.join(', ')}`)
  return v
}
function word<T extends string>(o: Fields, path: string, key: string, words: readonly T[]): T {
  const v = o[key]
  return words.find((w) => w === v) ?? fail(at(path, key), `must be one of ${words.join(', ')}`)
}
function textOf(o: Fields, path: string, key: string): string {
  const v = o[key]
  return typeof v === 'string' ? v : fail(at(path, key), 'must be a text')
}
function flag(o: Fields, path: string, key: string): boolean {
  const v = o[key] ?? true
  return typeof v === 'boolean' ? v : fail(at(path, key), 'must be true or false')
}

/** Reads a definition. Unknown fields and kinds are errors; what the server checks beyond the form is left to it. */
export function fromJson(v: Json): Node {
  if (v === null || typeof v !== 'object' || Array.isArray(v) || v instanceof JsonNumber || v.include_anonymous === undefined) return node(v, '')
  const { include_anonymous: include, ...rest } = v
  if (typeof include !== 'boolean') return fail('include_anonymous', 'must be true or false')
  const root = node(rest, '')
  return include ? { ...asGroup(root), bare: undefined, includeAnonymous: true } : root
}

/** The definition as a group, which the form shows. */
export function asGroup(n: Node): Group {
  return n.kind === 'group' ? n : { kind: 'group', id: newId(), match: 'all', conditions: [n], bare: true }
}

function node(v: Json, path: string): Node {
  const kind = v !== null && typeof v === 'object' && !Array.isArray(v) && !(v instanceof JsonNumber) ? v.kind : undefined
  switch (kind) {
    case undefined:
    case 'group':
      return group(object(v, path, 'kind', 'match', 'conditions'), path)
    case 'activity':
      return activity(object(v, path, 'kind', 'event', 'did', 'window', 'where', 'count', 'aggregate'), path)
    case 'attribute': {
      const o = object(v, path, 'kind', 'field', 'op', 'value')
      return { kind, id: newId(), test: test(o, path, textOf(o, path, 'field')) }
    }
    case 'consent': {
      const o = object(v, path, 'kind', 'channel', 'status', 'since', 'until')
      const time = (key: string) => (o[key] === undefined ? '' : textOf(o, path, key))
      return { kind, id: newId(), channel: textOf(o, path, 'channel'), status: textOf(o, path, 'status'), since: time('since'), until: time('until') }
    }
    case 'list':
    case 'segment': {
      const o = object(v, path, 'kind', `${kind}_id`, 'member')
      return { kind, id: newId(), of: textOf(o, path, `${kind}_id`), member: flag(o, path, 'member') }
    }
    default:
      return fail(at(path, 'kind'), 'must be activity, attribute, consent, list, segment or group')
  }
}

function group(o: Fields, path: string): Group {
  const match = word(o, path, 'match', ['all', 'any'] as const)
  const list = o.conditions
  if (!Array.isArray(list) || list.length === 0) return fail(at(path, 'conditions'), 'must have at least one condition')
  return { kind: 'group', id: newId(), match, conditions: list.map((c, i) => node(c, `${at(path, 'conditions')}[${i}]`)) }
}

function activity(o: Fields, path: string): Activity {
  const out: Activity = { kind: 'activity', id: newId(), event: textOf(o, path, 'event'), did: flag(o, path, 'did'), lastDays: null, where: [], aggregate: null, compare: { op: '>=', values: ['1'] } }
  if (o.window !== undefined) {
    const w = object(o.window, at(path, 'window'), 'last_days', 'all_time')
    if (w.last_days instanceof JsonNumber && w.all_time === undefined) out.lastDays = w.last_days.text
    else if (w.all_time !== true || w.last_days !== undefined) fail(at(path, 'window'), 'must have last_days, a number, or all_time, which is true')
  }
  if (o.where !== undefined) {
    if (!Array.isArray(o.where)) return fail(at(path, 'where'), 'must be a list')
    out.where = o.where.map((f, i) => {
      const here = `${at(path, 'where')}[${i}]`
      const filter = object(f, here, 'property', 'op', 'value')
      return { id: newId(), ...test(filter, here, textOf(filter, here, 'property')) }
    })
  }
  if (o.aggregate !== undefined) {
    if (o.count !== undefined) fail(at(path, 'count'), 'must not be given together with aggregate')
    const here = at(path, 'aggregate')
    const a = object(o.aggregate, here, 'fn', 'property', 'op', 'value')
    out.aggregate = { fn: word(a, here, 'fn', fns), property: textOf(a, here, 'property') }
    out.compare = compare(a, here)
  } else if (o.count !== undefined) {
    out.compare = compare(object(o.count, at(path, 'count'), 'op', 'value'), at(path, 'count'))
  }
  return out
}

/** The constants of an operator, as a list. */
function constants(o: Fields, path: string, op: Op): Json[] {
  const v = o.value
  const n = valuesOf(op)
  if (n === 0) return v === undefined ? [] : fail(at(path, 'value'), `must not be given with ${op}`)
  if (v === undefined) return fail(at(path, 'value'), 'is missing')
  if (n === 1) return [v]
  if (!Array.isArray(v) || v.length === 0 || (n === 2 && v.length !== 2)) return fail(at(path, 'value'), n === 2 ? 'must be [low, high], both included' : 'must be a list with at least one value')
  return v
}

function test(o: Fields, path: string, field: string): Test {
  const op = word(o, path, 'op', ops)
  return { path: field, op, values: constants(o, path, op).map((v): Value => scalar(v, at(path, 'value'))) }
}

function scalar(v: Json, path: string): Value {
  if (v instanceof JsonNumber) return { type: 'number', text: v.text }
  if (typeof v === 'string') return { type: 'text', text: v }
  if (typeof v === 'boolean') return { type: 'boolean', text: String(v) }
  return fail(path, 'must be a text, a number, true or false')
}

function compare(o: Fields, path: string): Compare {
  const op = word(o, path, 'op', ops)
  return { op, values: constants(o, path, op).map((v) => (v instanceof JsonNumber ? v.text : fail(at(path, 'value'), 'must be a number'))) }
}

/** Writes the form as JSON, without what is the default. Texts that are no numbers stay texts, which the server refuses. */
export function toJson(n: Node): Fields {
  switch (n.kind) {
    case 'group':
      if (n.bare && n.conditions.length === 1) return toJson(n.conditions[0]!)
      return { match: n.match, conditions: n.conditions.map(toJson), ...(n.includeAnonymous && { include_anonymous: true }) }
    case 'activity':
      return activityJson(n)
    case 'attribute':
      return { kind: 'attribute', field: n.test.path, ...testJson(n.test) }
    case 'consent':
      return { kind: 'consent', channel: n.channel, status: n.status, ...(n.since && { since: n.since }), ...(n.until && { until: n.until }) }
    case 'list':
    case 'segment':
      return { kind: n.kind, [`${n.kind}_id`]: n.of, ...(n.member ? {} : { member: false }) }
  }
}

function activityJson(n: Activity): Fields {
  const out: Fields = { kind: 'activity', event: n.event }
  if (!n.did) out.did = false
  if (n.lastDays !== null) out.window = { last_days: numberOf(n.lastDays) }
  if (n.where.length > 0) out.where = n.where.map((f) => ({ property: f.path, ...testJson(f) }))
  const c = { op: n.compare.op, value: inForm(n.compare.values.map(numberOf), n.compare.op)! }
  if (n.aggregate) out.aggregate = { ...n.aggregate, ...c }
  else if (n.compare.op !== '>=' || Number(n.compare.values[0]) !== 1) out.count = c
  return out
}

function testJson(t: Test): Fields {
  const value = inForm(t.values.map(valueJson), t.op)
  return value === undefined ? { op: t.op } : { op: t.op, value }
}

const inForm = (values: Json[], op: Op): Json | undefined => (valuesOf(op) === 0 ? undefined : valuesOf(op) === 1 ? (values[0] ?? '') : values)

const numberOf = (text: string): Json => (isNumberText(text.trim()) ? new JsonNumber(text.trim()) : text)

function valueJson(v: Value): Json {
  switch (v.type) {
    case 'number':
      return numberOf(v.text)
    case 'boolean':
      return v.text === 'true'
    default:
      return v.text
  }
}

export type { Attribute, Consent, Membership }
