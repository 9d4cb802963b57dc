import { expect, test } from 'vitest'
import { driftOf } from './drift'

const field = (types: [string, number][], last = '2026-01-31T00:00:00Z', share = 1) => ({ path: 'value', share, first_seen: '2026-01-01T00:00:00Z', last_seen: last, types: types.map(([type, s]) => ({ type, share: s })) })

test('a second type is drift, a null is none', () => {
  expect(driftOf(field([['number', 0.9], ['text', 0.1]]), null)).toMatch(/^Mostly number, also text:/)
  expect(driftOf(field([['number', 0.8], ['text', 0.1], ['boolean', 0.1]]), null)).toMatch(/also text and boolean:/)
  expect(driftOf(field([['number', 0.9], ['null', 0.1]]), null)).toBeNull()
})

test('what is not seen any more is drift, unless it was always rare', () => {
  expect(driftOf(field([['number', 1]], '2026-01-20T00:00:00Z'), '2026-01-31T00:00:00Z')).toMatch(/^Not seen for over a week/)
  expect(driftOf(field([['number', 1]], '2026-01-30T00:00:00Z'), '2026-01-31T00:00:00Z')).toBeNull()
  expect(driftOf(field([['number', 1]], '2026-01-01T00:00:00Z', 0.01), '2026-01-31T00:00:00Z')).toBeNull()
})
