import { expect, test } from 'vitest'
import { add, empty, mostHeld, mostShown, pause, resume, sameEvent, unseen, valueAt, type Entry, type Log } from './log'

const event = (key: number): Entry => ({ kind: 'event', key, profile_id: '', event_type: 'seen', timestamp: new Date(key).toISOString(), outcome: 'accepted', identity: {}, transitions: [], properties: {}, text: '' })
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => event(from + i))
const keys = (log: Log) => log.shown.map((e) => e.key)

test('the newest is first, and old ones go', () => {
  const log = add(add(empty, range(0, 2)), range(2, 4))
  expect(keys(log)).toEqual([3, 2, 1, 0])
  expect(add(log, range(4, 4 + mostShown)).shown.length).toBe(mostShown)
})

test('nothing is missing after a pause', () => {
  let log = pause(add(empty, range(0, 3)))
  for (let i = 3; i < 500; i++) log = add(log, [event(i)])
  expect(keys(log)).toEqual([2, 1, 0])
  expect(log.held.length).toBe(497)
  const after = resume(log, -1)
  expect(keys(after)).toEqual(range(0, 500).map((e) => e.key).reverse())
  expect(after).toMatchObject({ paused: false, held: [], lost: 0 })
})

test('a pause that was too long says how many it let go', () => {
  const log = add(add(pause(empty), range(0, mostHeld)), range(mostHeld, mostHeld + 7))
  expect([log.held.length, log.lost]).toEqual([mostHeld, 7])
  // The gap itself is older than what can be shown of it; a smaller pause shows it.
  const after = resume({ ...log, held: log.held.slice(-3) }, -1)
  expect(after.shown.at(-1)).toMatchObject({ kind: 'gap', missed: 7 })
  expect(after.shown.length).toBe(4)
})

test('values are found by path', () => {
  expect(valueAt({ order: { currency: 'EUR' } }, 'order.currency')).toBe('EUR')
  expect(valueAt({ order: null }, 'order.currency')).toBeUndefined()
  expect(valueAt({}, 'order')).toBeUndefined()
})

test('of what was read after a break those are new that were not seen, equal ones by their number', () => {
  const e = (timestamp: string, properties: Record<string, unknown>) => ({ profile_id: 'prf_1', event_type: 'seen', timestamp, properties })
  const a = e('2026-01-31T09:00:00.000Z', { n: 1, order: { id: 'A', sum: 2 } })
  const sameAsA = e('2026-01-31T09:00:00.000Z', { order: { sum: 2, id: 'A' }, n: 1 })
  const b = e('2026-01-31T09:00:00.000Z', { n: 2 })
  expect(unseen([a, b], [])).toEqual([a, b])
  expect(unseen([a, b], [sameEvent(sameAsA)])).toEqual([b])
  expect(unseen([a, sameAsA, b], [sameEvent(a)])).toEqual([sameAsA, b])
  expect(unseen([a, b], [sameEvent({ ...a, profile_id: 'prf_2' }), sameEvent({ ...b, timestamp: '2026-01-31T09:00:00.001Z' })])).toEqual([a, b])
})
