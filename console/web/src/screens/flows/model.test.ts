import { expect, test } from 'vitest'
import { parseJson, writeJson } from '@/shared/json'
import { checked, duration, insert, outlets, remove, templateFields, templateValues, type Definition, type Fields } from './model'

const flow = () => checked(parseJson('{"name":"f","trigger":null,"reentry":"once","steps":[{"id":"a","type":"email","next":"c"},{"id":"c","type":"condition","yes":"b","no":null},{"id":"b","type":"exit"}]}'))
const ways = (d: Definition) => d.steps.map((s) => `${s.id}>${outlets(s).map((o) => o.to ?? '.').join('|')}`)

test('a step is put on a way, and its removal restores the flow', () => {
  const { d, id } = insert(flow(), 'c', 'no', 'wait')
  expect(ways(d)).toEqual(['a>c', 'c>b|wait', 'wait>.', 'b>'])
  expect(remove(d, id)).toEqual(flow())
  expect(writeJson(d)).toContain('{"id":"wait","type":"wait","seconds":86400,"next":null}')
})

test('the entry stays the first step', () => {
  const { d } = insert(flow(), null, '', 'tag')
  expect(ways(d)[0]).toBe('tag>a')
  expect(ways(remove(flow(), 'a'))).toEqual(['c>b|.', 'b>'])
  expect(ways(remove(insert(insert(flow(), null, '', 'split').d, 'split', '1', 'sms').d, 'split'))).toEqual(['a>c', 'sms>.', 'c>b|.', 'b>'])
})

test('ids are unique, and what is no flow is refused', () => {
  expect(insert(insert(flow(), 'a', 'next', 'tag').d, 'a', 'next', 'tag').id).toBe('tag_2')
  expect(() => checked(parseJson('{"steps":[{"id":"a","type":"exit"},{"id":"a","type":"exit"}]}'))).toThrow('steps[1].id')
  expect(() => checked(parseJson('[]'))).toThrow('object')
})

test('durations are said in the largest whole unit', () => {
  expect([60, 86_400, 90, 172_800].map(duration)).toEqual(['1 minute', '1 day', '90 seconds', '2 days'])
})

test('the values of a template are edited without a change of what is not edited', () => {
  const whole = '{"parameters":["a"],"header":"https://x.example/a","header_type":"document","header_filename":"a.pdf","buttons":[{"type":"quick_reply","index":3,"value":"yes"},{"type":"url","index":0,"value":"b"}]}'
  const edited = (json: string) => writeJson(Object.fromEntries(Object.entries(templateFields(templateValues(parseJson(json) as Fields))).filter(([, v]) => v !== undefined)))
  expect(edited(whole)).toBe(whole)
  expect(edited('{"named_parameters":{"name":"Ada"},"header":"x","header_name":"what"}')).toBe('{"named_parameters":{"name":"Ada"},"header":"x","header_name":"what"}')
  const place = '{"header_type":"location","header_location":{"latitude":"52.5","longitude":"{{event.lon}}","name":"Shop"},"buttons":[{"type":"copy_code","index":0,"value":"SALE25"}]}'
  expect(edited(place)).toBe(place)
  expect(edited('{"parameters":[],"header":""}')).toBe('{}')
})
