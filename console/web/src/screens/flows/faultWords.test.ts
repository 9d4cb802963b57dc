import { expect, test } from 'vitest'
import { faultWords } from './faultWords'

test('what a draft lacks is said in the words of the form, and anything else as the server says it', () => {
  expect(faultWords('trigger.segment_id is missing')).toBe('Choose the segment.')
  expect(faultWords('seconds must be greater than 0')).toBe('seconds must be greater than 0')
})
