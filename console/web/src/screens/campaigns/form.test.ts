import { expect, it } from 'vitest'
import { parseJson, writeJson } from '@/shared/json'
import { noValues } from '@/shared/templateValues'
import { check } from '../segments/check'
import { asGroup, fromJson, toJson } from '../segments/definition'
import { sentence } from '../segments/sentence'
import { contentOf, exceptDefinition, exceptName, formOf, lacks, newChannel, partOf, savedFields } from './form'
import type { Campaign } from './useCampaigns'

const lists = (...list_id: string[]) => ({ segment_ids: [], list_id })
const segments = (...segment_ids: string[]) => ({ segment_ids, list_id: [] })

it('makes a definition of an audience without some people', () => {
  const read = (...of: Parameters<typeof exceptDefinition>) => {
    const text = JSON.stringify(exceptDefinition(...of))
    const root = asGroup(fromJson(parseJson(text)))
    expect(writeJson(toJson(root))).toBe(text)
    expect(check(root).size).toBe(0)
    return sentence(root)
  }
  expect(read(segments('seg_1'), lists('lst_2'))).toBe('is in the segment seg_1 and is not on the list lst_2')
  expect(read({ segment_ids: ['seg_1'], list_id: ['lst_1'] }, { segment_ids: ['seg_3'], list_id: ['lst_2'] })).toBe('(is in the segment seg_1 or is on the list lst_1) and is not in the segment seg_3 and is not on the list lst_2')
  expect(read(lists(), lists('lst_2'))).toBe('is not on the list lst_2')
})

it('edits the message of each channel of a campaign of several', () => {
  const c = { name: 'n', subject: 'Sale', body: '<p>b</p>', sender: '', sender_name: '', reply_to: '', link: null, track_links: false, push: null, whatsapp: null, template_id: null, list_id: [], segment_ids: [], channel: 1, type: null, service: null, channels: [{ channel: 'email', subject: '', body: '', sender: '', link: null, push: null, whatsapp: null }] } as unknown as Campaign
  let f = formOf(c)
  f = { ...f, channels: [newChannel('whatsapp'), ...f.channels, newChannel('push')] }
  expect(lacks(f, c)).toBe('WhatsApp: The message is empty.')
  const put = (at: number, part: Parameters<ReturnType<typeof partOf>['set']>[0]) => (f = { ...f, ...partOf(c, f, at).set(part) })
  put(0, { whatsapp: { ...noValues, template: 'sale', language: 'en', parameters: ['a'] } })
  put(1, { subject: 'Only today' })
  expect(lacks(f, c)).toBe('Push: The message is empty.')
  put(2, { subject: 'Now', body: 'b', link: 'myapp://sale' })
  expect(lacks(f, c)).toBe('')
  expect([f.subject, f.body]).toEqual(['Only today', '<p>b</p>'])
  const channels = [
    { channel: 'whatsapp', subject: '', body: '', sender: '', link: '', whatsapp: { ...noValues, template: 'sale', language: 'en', parameters: ['a'] } },
    { channel: 'email' },
    { channel: 'push', subject: 'Now', body: 'b', sender: '', link: 'myapp://sale', push: {} },
  ]
  expect(savedFields(f).channels).toEqual(channels)
  expect(contentOf(f, c, 1)).toEqual({ subject: 'Only today', sender_name: '', body: '<p>b</p>', channels, via: 'email' })
  expect(contentOf(f, c, 2)).toEqual({ channels, via: 'push' })
  expect([0, 1, 2].map((at) => partOf(c, f, at).campaign.type)).toEqual([3, 1, 4])
})

it('names it so that no other has the name', () => {
  expect(exceptName(['Buyers'], ['Newsletter'], [])).toBe('Buyers except Newsletter')
  expect(exceptName([], ['A', 'B'], [])).toBe('Everybody except A, B')
  expect(exceptName(['Buyers'], ['Newsletter'], ['Buyers except Newsletter', 'Buyers except Newsletter 2'])).toBe('Buyers except Newsletter 3')
  const long = exceptName(['x'.repeat(200)], ['y'], [])
  expect([long.length, long.at(-1)]).toEqual([200, '…'])
  expect(exceptName(['x'.repeat(200)], ['y'], [long])).toHaveLength(200)
})
