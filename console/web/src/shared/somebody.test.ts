import { expect, it } from 'vitest'
import { searchesFor } from './somebody'

it('looks first for somebody of the audience who would get the message', () => {
  const tries = searchesFor({ channel: 'email', segments: ['seg_1'], lists: ['lst_1'] })
  expect(tries.slice(0, 2)).toEqual([
    { segment_id: 'seg_1', status: 'Engaged', channel: 'email' },
    { segment_id: 'seg_1', status: 'Subscribed', channel: 'email' },
  ])
  expect(tries.findIndex((t) => t.list_id && t.status)).toBeLessThan(tries.findIndex((t) => !t.status))
  expect(tries.at(-1)).toEqual({})
})

it('looks for anybody who would get the message where there is no audience', () => {
  expect(searchesFor({ channel: 'sms' }).map((t) => t.status)).toEqual(['Engaged', 'Subscribed', 'At risk', undefined])
})
