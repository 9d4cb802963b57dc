import { expect, test } from 'vitest'
import { resultInWords } from './dryWords'

test('what would become of a step is said in words', () => {
  const step = { type: 'email', result: 'queued', until: null, branch: null }
  expect(resultInWords(step)).toBe('is sent')
  expect(resultInWords({ ...step, type: 'omnichannel', channel: 'sms' })).toBe('is sent: text message')
  expect(resultInWords({ ...step, result: 'skipped_not_subscribed' })).toBe('Nothing is sent: not subscribed')
  expect(resultInWords({ ...step, type: 'split', result: 'branch', branch: 0 })).toBe('takes way 1')
  expect(resultInWords({ ...step, type: 'wait', result: 'done', until: '2026-01-31T09:00:00.000Z' })).toMatch(/^waits until 31 Jan 2026/)
  expect(resultInWords({ ...step, type: 'wait', result: 'done' })).toBe('does not wait: its time is over')
  expect(resultInWords({ ...step, type: 'exit', result: 'done' })).toBe('leaves the flow here')
  expect(resultInWords({ ...step, result: 'something_new' })).toBe('something new')
})
