import { describe, expect, it } from 'vitest'
import { parseJson, type Json } from '@/shared/json'
import { asGroup, fromJson } from './definition'
import { faultWords } from './faultWords'
import { placed } from './tree'

// The definitions that the segment package refuses, each followed by what it says.
const files = import.meta.glob<string>('../../../../../segment/testdata/refused.txt', { query: '?raw', import: 'default', eager: true })
const lines = Object.values(files)[0]!.split('\n')

/** The refusals of definitions that the form can show, so that people can see them. */
const refusals = lines.flatMap((line, i) => {
  const said = lines.slice(i + 1).find((l) => l.trim() !== '')
  if (!line.startsWith('{') || !said?.startsWith('=> ')) return []
  try {
    return [{ root: asGroup(fromJson(parseJson(line) as Json)), said: said.slice(3) }]
  } catch {
    return []
  }
})

describe('what the server refuses', () => {
  it('is looked at', () => expect(refusals.length).toBeGreaterThan(30))
  it.each(refusals)('is said in the words of the builder: $said', ({ root, said }) => {
    const { text } = faultWords(placed(root, said).text)
    expect(text).toMatch(/^[A-Z“].*[.?!]$/s)
    expect(text).not.toMatch(/\b(count|aggregate|window|where)\b[.[]|\[\d+\]|\[low|_days|_time\b|segment_id|list_id|not_(exists|in|contains)|snake_case|\bstring|\barray|\bboolean|1e18/)
  })
})

it('names the input that is at fault', () => {
  expect(faultWords('count.value must not be negative')).toEqual({ place: 'number', text: 'The number of times must not be negative.' })
  expect(faultWords('count.value must be [low, high] with low not above high').text).toBe('The number of times must be two values, and the first must not be above the second.')
  expect(faultWords('where[1].value must be given')).toEqual({ place: 'filter 1 value', text: 'The value of filter 2 is missing.' })
  expect(faultWords('window.last_days must be at most 36500')).toEqual({ place: 'days', text: 'The number of days must be at most 36,500.' })
  expect(faultWords('list_id must be the id of a list, there is no "lst_9"').text).toBe('The list is not there: the list was deleted. Choose another one.')
})

it('leaves the place out of a warning', () => {
  expect(faultWords('where: none of the 60 events of the type item_purchased that were looked at has the property valeu; did you mean value?')).toEqual({ place: '', text: 'None of the 60 events of the type item_purchased that were looked at has the property valeu. Did you mean value?' })
  expect(faultWords('event: there has never been an event of the type x')).toEqual({ place: 'event', text: 'There has never been an event of the type x.' })
})
