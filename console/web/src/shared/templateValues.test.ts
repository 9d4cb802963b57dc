import { expect, test } from 'vitest'
import { namedLines, namedOf, noPlace, noValues, tidy } from './templateValues'

test('named values are read from lines and written as lines', () => {
  expect(namedOf('name: {{first_name | default: "you"}}\n\n code :A\nhalf')).toEqual({ name: '{{first_name | default: "you"}}', code: 'A', half: '' })
  expect(namedOf('')).toEqual({})
  expect(namedLines({ name: 'Ada', at: '9:00' })).toBe('name: Ada\nat: 9:00')
  expect(namedOf(namedLines({ name: 'Ada', at: '9:00' }))).toEqual({ name: 'Ada', at: '9:00' })
})

test('what cannot stand beside other values is left out', () => {
  const header = { header: 'x', header_type: 'document' as const, header_name: 'what', header_filename: 'a.pdf' }
  expect(tidy({ ...noValues, ...header, parameters: ['a'], named_parameters: { name: 'Ada' } })).toEqual({ ...noValues, ...header, named_parameters: { name: 'Ada' } })
  expect(tidy({ ...noValues, ...header, parameters: ['a'], header_type: 'image' })).toEqual({ ...noValues, header: 'x', header_type: 'image', parameters: ['a'] })
  expect(tidy({ ...noValues, ...header, header: '' })).toEqual(noValues)
  expect(tidy({ ...noValues, ...header, header_type: 'location' })).toEqual({ ...noValues, header_type: 'location', header_location: noPlace })
  const place = { latitude: '52.5', longitude: '13.4', name: 'Shop', address: '' }
  expect(tidy({ ...noValues, header_type: 'location', header_location: place })).toEqual({ ...noValues, header_type: 'location', header_location: place })
  expect(tidy({ ...noValues, header_location: place })).toEqual(noValues)
})
