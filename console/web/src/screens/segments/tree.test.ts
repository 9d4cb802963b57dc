import { describe, expect, it } from 'vitest'
import { parseJson, writeJson } from '@/shared/json'
import { asGroup, fromJson, toJson } from './definition'
import type { Group, Node } from './model'
import { duplicate, move, placed, places, remove, step, unwrap, wrap } from './tree'

/** A tree of lists by name: a, b, (c, d), e. */
function tree(): Group {
  const leaf = (name: string) => `{"kind":"list","list_id":"${name}"}`
  const root = asGroup(fromJson(parseJson(`{"match":"all","conditions":[${leaf('a')},${leaf('b')},{"match":"any","conditions":[${leaf('c')},${leaf('d')}]},${leaf('e')}]}`)))
  return root
}
const show = (n: Node): string => (n.kind === 'group' ? `(${n.conditions.map(show).join(' ')})` : n.kind === 'list' ? n.of : '?')
const id = (root: Group, name: string): string => [...places(root).values()].find((n) => (n.kind === 'list' && n.of === name) || (name === 'group' && n.kind === 'group' && n !== root))!.id

describe('moving by steps', () => {
  it('goes past neighbours, into groups and out of them, and back the same way', () => {
    let r = tree()
    const seen = [show(r)]
    for (let i = 0; i < 6; i++) seen.push(show((r = step(r, id(r, 'a'), 1))))
    expect(seen).toEqual(['(a b (c d) e)', '(b a (c d) e)', '(b (a c d) e)', '(b (c a d) e)', '(b (c d a) e)', '(b (c d) a e)', '(b (c d) e a)'])
    const back: string[] = []
    for (let i = 0; i < 6; i++) back.push(show((r = step(r, id(r, 'a'), -1))))
    expect(back).toEqual(['(b (c d) a e)', '(b (c d a) e)', '(b (c a d) e)', '(b (a c d) e)', '(b a (c d) e)', '(a b (c d) e)'])
    expect(step(r, id(r, 'a'), -1)).toBe(r)
  })
  it('moves a whole group', () => {
    const r = tree()
    expect(show(step(r, id(r, 'group'), -1))).toBe('(a (c d) b e)')
  })
})

describe('moving by drag', () => {
  it('takes a place before any other', () => {
    const r = tree()
    expect(show(move(r, id(r, 'e'), r.id, 0))).toBe('(e a b (c d))')
    expect(show(move(r, id(r, 'a'), r.id, 4))).toBe('(b (c d) e a)')
    expect(show(move(r, id(r, 'a'), r.id, 1))).toBe('(a b (c d) e)')
    expect(show(move(r, id(r, 'b'), id(r, 'group'), 1))).toBe('(a (c b d) e)')
  })
  it('does not put a group into itself', () => {
    const r = tree()
    expect(move(r, id(r, 'group'), id(r, 'group'), 0)).toBe(r)
  })
  it('leaves no empty group behind', () => {
    let r = tree()
    r = move(r, id(r, 'c'), r.id, 0)
    r = move(r, id(r, 'd'), r.id, 0)
    expect(show(r)).toBe('(d c a b e)')
  })
})

it('removes, wraps, takes out of a group and copies', () => {
  const r = tree()
  expect(show(remove(remove(r, id(r, 'c')), id(r, 'd')))).toBe('(a b e)')
  expect(show(wrap(r, id(r, 'b')))).toBe('(a (b) (c d) e)')
  expect(show(unwrap(r, id(r, 'group')))).toBe('(a b c d e)')
  const two = duplicate(r, id(r, 'group'))
  expect(show(two)).toBe('(a b (c d) (c d) e)')
  expect(new Set([...places(two).values()].map((n) => n.id)).size).toBe(10)
})

it('finds nodes by the places that the server names', () => {
  const r = tree()
  expect(placed(r, 'conditions[2].conditions[1]: there is no such list')).toEqual({ node: r.conditions[2]!.kind === 'group' ? r.conditions[2].conditions[1] : null, text: 'there is no such list' })
  expect(placed(r, 'conditions[0].window.last_days must be greater than 0')).toEqual({ node: r.conditions[0], text: 'window.last_days must be greater than 0' })
  const bare = asGroup(fromJson(parseJson('{"kind":"list","list_id":"a"}')))
  expect(placed(bare, 'list_id must not be empty').node).toBe(bare.conditions[0])
  expect(writeJson(toJson(bare))).toBe('{"kind":"list","list_id":"a"}')
})
