import { expect, it } from 'vitest'
import { parseJson, writeJson } from '@/shared/json'
import { check } from '../segments/check'
import { asGroup, fromJson, toJson } from '../segments/definition'
import { sentence } from '../segments/sentence'
import { exceptDefinition, exceptName } from './form'

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

it('names it so that no other has the name', () => {
  expect(exceptName(['Buyers'], ['Newsletter'], [])).toBe('Buyers except Newsletter')
  expect(exceptName([], ['A', 'B'], [])).toBe('Everybody except A, B')
  expect(exceptName(['Buyers'], ['Newsletter'], ['Buyers except Newsletter', 'Buyers except Newsletter 2'])).toBe('Buyers except Newsletter 3')
  const long = exceptName(['x'.repeat(200)], ['y'], [])
  expect([long.length, long.at(-1)]).toEqual([200, '…'])
  expect(exceptName(['x'.repeat(200)], ['y'], [long])).toHaveLength(200)
})
