import { expect, it } from 'vitest'
import { check } from './check'
import { newActivity, type Op, type Value } from './model'
import { meant, unseenValues } from './seen'

const text = (t: string): Value => ({ type: 'text', text: t })
const known = (values: [string, 'text' | 'number'][], more = false, types: ('text' | 'number' | 'list')[] = ['text']) => ({ more_values: more, types: types.map((type) => ({ type, share: 1 })), values: values.map(([value, type]) => ({ value, type, share: 0.5 })) })

it('finds values that nothing has', () => {
  const plans = known([['free', 'text'], ['Pro', 'text'], ['7', 'number']])
  expect(unseenValues({ op: '=', values: [text('Pro')] }, plans)).toEqual([])
  // Texts are compared letter by letter, so the case matters.
  expect(unseenValues({ op: '=', values: [text('PRO')] }, plans)).toEqual(['PRO'])
  expect(meant('PRO', plans)).toBe('Pro')
  expect(meant('gold', plans)).toBeUndefined()
  expect(unseenValues({ op: '=', values: [text('por')] }, plans)).toEqual(['por'])
  expect(unseenValues({ op: 'in', values: [text('free'), text('gold')] }, plans)).toEqual(['gold'])
  expect(unseenValues({ op: '=', values: [{ type: 'number', text: '7.0' }] }, plans)).toEqual([])
  expect(unseenValues({ op: '=', values: [text('7')] }, plans)).toEqual(['7'])
  expect(unseenValues({ op: 'starts_with', values: [text('fr')] }, plans)).toEqual([])
  expect(unseenValues({ op: 'ends_with', values: [text('fr')] }, plans)).toEqual(['fr'])
})

it('says nothing that is not known', () => {
  const one: { op: Op; values: Value[] } = { op: '=', values: [text('x')] }
  expect(unseenValues(one, undefined)).toEqual([])
  expect(unseenValues(one, known([['a', 'text']], true))).toEqual([])
  expect(unseenValues(one, known([]))).toEqual([])
  expect(unseenValues(one, known([['a', 'text']], false, ['text', 'list']))).toEqual([])
  expect(unseenValues({ op: '>', values: [text('x')] }, known([['a', 'text']]))).toEqual([])
  expect(unseenValues({ op: '=', values: [text('')] }, known([['a', 'text']]))).toEqual([])
})

it('refuses in the form what the server would refuse, at its input', () => {
  const fault = (change: object) => {
    const n = { ...newActivity(), event: 'a', ...change }
    return check({ kind: 'group', id: 'g', match: 'all', conditions: [n] }).get(n.id)
  }
  expect(fault({})).toBeUndefined()
  expect(fault({ compare: { op: '>=', values: ['-1'] } })).toEqual({ place: 'number', text: 'The number must not be negative.' })
  expect(fault({ compare: { op: '>=', values: ['1.5'] } })?.place).toBe('number')
  expect(fault({ compare: { op: '>=', values: ['1.5'] }, aggregate: { fn: 'sum', property: 'value' } })).toBeUndefined()
  expect(fault({ compare: { op: 'between', values: ['5', '2'] } })?.text).toBe('The first number must not be above the second.')
  expect(fault({ lastDays: '40000' })).toEqual({ place: 'days', text: 'The number of days must be at most 36,500.' })
  expect(fault({ where: [{ id: 'f', path: 'value', op: '>', values: [{ type: 'number', text: '1,5' }] }] })?.place).toBe('filter 0 value')
})
