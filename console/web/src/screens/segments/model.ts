/** A definition as the form has it: the grammar of segments, with texts as they were typed. */

export type Op = '=' | '!=' | '>' | '>=' | '<' | '<=' | 'in' | 'not_in' | 'contains' | 'not_contains' | 'starts_with' | 'ends_with' | 'exists' | 'not_exists' | 'between' | 'before' | 'after' | 'in_last_days' | 'not_in_last_days'

export type ValueType = 'text' | 'number' | 'boolean'

/** A constant. text is what is typed; that of a boolean is true or false. */
export interface Value {
  type: ValueType
  text: string
}

/** A comparison of what is at a path with constants. */
export interface Test {
  path: string
  op: Op
  /** None for exists, two for between, any number for in, one otherwise. */
  values: Value[]
}

/** A comparison of a number with numbers, as they were typed. */
export interface Compare {
  op: Op
  values: string[]
}

export type Fn = 'sum' | 'avg' | 'min' | 'max' | 'distinct'

export interface Group {
  kind: 'group'
  id: string
  match: 'all' | 'any'
  conditions: Node[]
  /** The definition was a single condition without a group; it is written so while it has one condition. */
  bare?: boolean
  /** At the root: anonymous people may be members, too. */
  includeAnonymous?: boolean
}

export interface Activity {
  kind: 'activity'
  id: string
  event: string
  did: boolean
  /** Days of the sliding window as typed; null for all time. */
  lastDays: string | null
  where: (Test & { id: string })[]
  /** What is compared: how many events, or a function of a property of them. */
  aggregate: { fn: Fn; property: string } | null
  compare: Compare
}

export interface Attribute {
  kind: 'attribute'
  id: string
  test: Test
}

export interface Consent {
  kind: 'consent'
  id: string
  channel: string
  status: string
  since: string
  until: string
}

export interface Membership {
  kind: 'list' | 'segment'
  id: string
  /** Id of the list or segment. */
  of: string
  member: boolean
}

export type Leaf = Activity | Attribute | Consent | Membership
export type Node = Group | Leaf

let made = 0
/** A name for a node that React and the drag keep apart; it is not in the JSON. */
export const newId = () => `n${++made}`

export const newTest = (path = ''): Test => ({ path, op: '=', values: [{ type: 'text', text: '' }] })
export const newActivity = (): Activity => ({ kind: 'activity', id: newId(), event: '', did: true, lastDays: null, where: [], aggregate: null, compare: { op: '>=', values: ['1'] } })

export function newNode(kind: Node['kind']): Node {
  const id = newId()
  switch (kind) {
    case 'group':
      return { kind, id, match: 'any', conditions: [newActivity()] }
    case 'activity':
      return newActivity()
    case 'attribute':
      return { kind, id, test: newTest() }
    case 'consent':
      return { kind, id, channel: 'email', status: 'subscribed', since: '', until: '' }
    case 'list':
    case 'segment':
      return { kind, id, of: '', member: true }
  }
}

/** The kinds that a condition can be changed to in place; a group is put around it instead. */
export const leafKinds: Leaf['kind'][] = ['activity', 'attribute', 'consent', 'list', 'segment']

/** A condition of another kind in the place of one: the same id, and what fits both. */
export function ofKind(n: Leaf, kind: Leaf['kind']): Leaf {
  const next = { ...(newNode(kind) as Leaf), id: n.id }
  return 'member' in n && 'member' in next ? { ...next, member: n.member } : next
}

export const newDefinition = (): Group => ({ kind: 'group', id: newId(), match: 'all', conditions: [newActivity()] })

/** How many constants an operator takes; Infinity for a list. */
export function valuesOf(op: Op): number {
  switch (op) {
    case 'exists':
    case 'not_exists':
      return 0
    case 'between':
      return 2
    case 'in':
    case 'not_in':
      return Infinity
    default:
      return 1
  }
}

/** The constants of another operator: those that fit stay. */
export function fitted<V>(values: V[], op: Op, empty: V): V[] {
  const n = valuesOf(op)
  if (n === Infinity) return values
  return Array.from({ length: n }, (_, i) => values[i] ?? values[0] ?? empty)
}
