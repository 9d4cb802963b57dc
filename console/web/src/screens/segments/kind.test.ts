import { expect, it } from 'vitest'
import { toJson } from './definition'
import { leafKinds, newNode, ofKind, type Leaf, type Membership } from './model'

it('makes a condition of another kind in its place', () => {
  for (const from of leafKinds)
    for (const to of leafKinds) {
      const one = newNode(from) as Leaf
      const other = ofKind(one, to)
      expect(other.id).toBe(one.id)
      expect(toJson(other).kind).toBe(to)
    }
})

it('keeps "not" between lists and segments, and nothing that names another thing', () => {
  const list: Membership = { ...(newNode('list') as Membership), of: 'lst_1', member: false }
  expect(toJson(ofKind(list, 'segment'))).toEqual({ kind: 'segment', segment_id: '', member: false })
})
