import { expect, it } from 'vitest'
import { parseJson, writeJson } from '@/shared/json'
import { check } from '../segments/check'
import { asGroup, fromJson, toJson } from '../segments/definition'
import { sentence } from '../segments/sentence'
import { exceptDefinition } from './form'

it('makes an audience without a list a definition that lacks the list alone', () => {
  const read = (segment_ids: string[], list_id: string[]) => {
    const text = exceptDefinition({ segment_ids, list_id })
    const root = asGroup(fromJson(parseJson(text)))
    expect(writeJson(toJson(root))).toBe(text)
    return [sentence(root), [...check(root).values()].map((p) => p.text).join(' ')]
  }
  expect(read(['seg_1'], [])).toEqual(['is in the segment seg_1 and is not on the list …', 'Choose a list.'])
  expect(read(['seg_1'], ['lst_1'])).toEqual(['(is in the segment seg_1 or is on the list lst_1) and is not on the list …', 'Choose a list.'])
  expect(read([], [])).toEqual(['is in the segment … and is not on the list …', 'Choose a segment. Choose a list.'])
})
