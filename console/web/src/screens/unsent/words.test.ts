import { expect, it } from 'vitest'
import { titleOf, whyUnsent } from './words'

it('says what was missing, now or then', () => {
  expect(whyUnsent('email', ['email', 'sms'])).toBe('The server has no mail relay.')
  expect(whyUnsent('sms', ['email', 'sms'])).toBe('The server has no provider for SMS.')
  expect(whyUnsent('email', ['sms'])).toBe('The server had no mail relay then. It has one now, but sends no old messages.')
  expect(whyUnsent('push', ['push'])).toBe('The server has no provider for push messages.')
})

it('names a message without a subject by its text', () => {
  expect(titleOf({ subject: 'Sale', body: 'Hello' })).toBe('Sale')
  expect(titleOf({ body: '\nHello Ann\nBye' })).toBe('Hello Ann')
  expect(titleOf({})).toBe('without a subject')
})
