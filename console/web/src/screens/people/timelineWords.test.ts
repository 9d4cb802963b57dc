import { describe, expect, it } from 'vitest'
import { stepName, summary, wordsOf, type Entry } from './timelineWords'

const at = '2026-11-23T08:00:00.000Z'
const event = (kind: Entry['kind'], event_type: string, properties: Record<string, unknown>): Entry => ({ at, kind, event: { event_type, timestamp: at, properties, idempotency_key: null } })

describe('entries of a timeline in words', () => {
  it('names the segment and the cause', () => {
    expect(wordsOf({ at, kind: 'transition', transition: { segment_id: 'seg_1', segment_name: 'Loyal', entered: false, cause: 'expiry', profile_id: 'prf_1' } })).toEqual({ title: 'Left Loyal', detail: 'because time passed' })
    expect(wordsOf({ at, kind: 'transition', transition: { segment_id: 'seg_1', segment_name: null, entered: true, cause: 'merge', profile_id: 'prf_1' } }).title).toBe('Entered a segment that was deleted')
  })
  it('says why a flow did not send', () => {
    const step = { flow_id: 'flw_1', flow_name: 'Welcome', enrolment: 1, step_id: 'mail', step_type: 'email', branch: null, reason: null }
    expect(wordsOf({ at, kind: 'transition', transition: { segment_id: 'seg_1', segment_name: 'Loyal', entered: false, cause: 'merge', profile_id: 'prf_2' } }, 'prf_1').detail).toBe('by a merge of two profiles; it was prf_2, which became part of this profile')
    expect(wordsOf({ at, kind: 'message', step: { ...step, result: 'skipped_no_address' } })).toEqual({ title: 'Welcome: E-mail (mail)', detail: 'not sent: no address' })
    expect(wordsOf({ at, kind: 'step', step: { ...step, result: 'failed', reason: 'timeout' } }).detail).toBe('failed: timeout')
    expect(wordsOf({ at, kind: 'step', step: { ...step, result: 'branch', branch: 1 } }).detail).toBe('took a branch 2')
  })
  it('reads the service’s own events', () => {
    expect(wordsOf(event('suppression', 'suppressed', { channel: 'email', reason: 'bounced', source: 'api' }))).toEqual({ title: 'E-mail was blocked', detail: 'bounced, api' })
    expect(wordsOf(event('message', 'email_soft_bounced', { campaign_name: 'News' }))).toEqual({ title: 'E-mail soft bounced', detail: 'News' })
    expect(wordsOf(event('list', 'list_joined', { list_id: 'lst_1', list_name: 'VIP' })).title).toBe('Joined the list VIP')
  })
  it('names the pages that somebody saw', () => {
    expect(wordsOf(event('event', 'page_viewed', { name: 'Home', url: 'https://shop.example/', referrer: 'https://search.example/' }))).toEqual({ title: 'Viewed Home', detail: 'https://shop.example/, from https://search.example/' })
    expect(wordsOf(event('event', 'page_viewed', { path: '/cart' }))).toEqual({ title: 'Viewed /cart', detail: '' })
    expect(wordsOf(event('event', 'screen_viewed', { name: 'Receipt' })).title).toBe('Viewed Receipt')
    expect(wordsOf(event('event', 'page_viewed', { product: 'sku-7' }))).toEqual({ title: 'page_viewed', detail: 'product: sku-7' })
  })
  it('sums up the properties of other events', () => {
    expect(wordsOf(event('event', 'item_purchased', { value: 20, category: 'shoes', order: { currency: 'EUR' } }))).toEqual({ title: 'item_purchased', detail: 'value: 20, category: shoes, 1 more' })
    expect(summary({})).toBe('')
    expect(summary({ order: {} })).toBe('1 more')
  })
})

describe('a step', () => {
  it('is named by what it does, and by its id where that says more', () => {
    expect(['email', 'email_2', 'mail'].map((id) => stepName(id, 'email'))).toEqual(['E-mail', 'E-mail', 'E-mail (mail)'])
    expect(stepName('update', 'update_contact')).toBe('Change the person')
  })
})
