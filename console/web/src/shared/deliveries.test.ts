import { expect, it } from 'vitest'
import { deliveriesOf } from './deliveries'

it('tells deliveries that nobody reports from none', () => {
  expect(deliveriesOf({ sent: 10, delivered: 0, bounces: 2 })).toBeNull()
  expect(deliveriesOf({ sent: 10, delivered: 3, bounces: 2 })).toBe(3)
  expect(deliveriesOf({ sent: 2, delivered: 0, bounces: 2 })).toBe(0)
  expect(deliveriesOf({ sent: 0, delivered: 0, bounces: 0 })).toBe(0)
})
