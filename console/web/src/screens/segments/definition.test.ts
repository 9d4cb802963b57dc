import { describe, expect, it } from 'vitest'
import { JsonNumber, parseJson, writeJson, type Json } from '@/shared/json'
import { check } from './check'
import { asGroup, fromJson, toJson } from './definition'
import { sentence } from './sentence'

// The definitions that the segment package tests itself with.
const files = import.meta.glob<string>('../../../../../segment/testdata/*.txt', { query: '?raw', import: 'default', eager: true })
const read = (name: string) => Object.entries(files).find(([path]) => path.endsWith(`/${name}.txt`))![1].split('\n')

const accepted = read('accepted').filter((l) => l.startsWith('{'))
const canonical = read('accepted').filter((l) => l.startsWith('=> ')).map((l) => l.slice(3))
const sameLeaf = read('same_leaf').filter((l) => l.startsWith('{'))
const members = read('members').flatMap((l) => (/"kind"|"match"/.test(l) ? [l.slice(l.indexOf('{'), l.lastIndexOf('}') + 1)] : []))

/** The definition without what is the default anyway, names in order: what must be the same after a round trip. */
function plain(v: Json): unknown {
  if (v instanceof JsonNumber) return `number ${v.text}`
  if (Array.isArray(v)) return v.map(plain)
  if (v === null || typeof v !== 'object') return v
  const o = { ...v }
  if (o.include_anonymous === false) delete o.include_anonymous
  if (o.include_anonymous && o.conditions === undefined) {
    // It makes a group around a condition that stands alone, as in the canonical form.
    const { include_anonymous, ...alone } = o
    return plain({ match: 'all', conditions: [alone], include_anonymous })
  }
  if (o.kind === 'group') delete o.kind
  if (o.did === true) delete o.did
  if (o.member === true) delete o.member
  if (Array.isArray(o.where) && o.where.length === 0) delete o.where
  if (o.window && writeJson(o.window) === '{"all_time":true}') delete o.window
  if (o.count && /^\{"op":">=","value":1(\.0+|e0)?\}$/.test(writeJson(o.count))) delete o.count
  return Object.fromEntries(Object.keys(o).sort().map((k) => [k, plain(o[k]!)]))
}

describe('the segment package’s own definitions', () => {
  it('are there', () => {
    expect(accepted.length).toBeGreaterThan(20)
    expect(canonical.length).toBe(accepted.length)
    expect(sameLeaf.length).toBeGreaterThan(30)
    expect(members.length).toBeGreaterThan(60)
  })
  it.each(canonical)('stays letter by letter: %s', (text) => {
    expect(writeJson(toJson(fromJson(parseJson(text))))).toBe(text)
    expect(writeJson(toJson(asGroup(fromJson(parseJson(text)))))).toBe(text)
  })
  it.each([...accepted, ...sameLeaf, ...members])('means the same: %s', (text) => {
    const before = parseJson(text)
    expect(plain(toJson(fromJson(before)) as Json)).toEqual(plain(before))
  })
  it.each([...canonical, ...members])('is complete in the form and has a sentence: %s', (text) => {
    const group = asGroup(fromJson(parseJson(text)))
    expect([...check(group).values()].map((p) => p.text).filter((p) => !/^Give a date/.test(p))).toEqual([])
    expect(sentence(group)).not.toMatch(/undefined|NaN|\[object/)
    expect(sentence(group).length).toBeGreaterThan(5)
  })
})

describe('what the form cannot show is said', () => {
  it.each([
    ['{"kind":"activity","event":"a","evnt":1}', 'evnt is no field here'],
    ['{"match":"all","conditions":[]}', 'conditions must have at least one condition'],
    ['{"match":"all","conditions":[{"kind":"activity","event":"a","window":{"last_days":"x"}}]}', 'conditions[0].window'],
    ['{"kind":"activity","event":"a","count":{"op":">=","value":1},"aggregate":{"fn":"sum","property":"v","op":">","value":1}}', 'must not be given together'],
    ['{"kind":"attribute","field":"email","op":"exists","value":1}', 'must not be given with exists'],
    ['{"kind":"attribute","field":"email","op":"between","value":[1]}', 'low, high'],
    ['{"kind":"attribute","field":"email","op":"="}', 'value is missing'],
    ['[1]', 'the definition must be an object'],
  ])('%s', (text, says) => {
    expect(() => fromJson(parseJson(text))).toThrow(says)
  })
})
