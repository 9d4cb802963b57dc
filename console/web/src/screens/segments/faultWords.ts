import { opNames } from './fields'
import type { Op } from './model'

/** Which input of a condition a fault is of; the number is that of the filter. */
export type FaultPlace = 'event' | 'number' | 'days' | 'property' | 'value' | 'field' | 'date' | `filter ${number} property` | `filter ${number} value` | ''

export interface Fault {
  place: FaultPlace
  text: string
}

const names: [RegExp, (i: number) => FaultPlace, (i: number) => string][] = [
  [/^event$/, () => 'event', () => 'The event'],
  [/^count\.value(\[\d+\])?$/, () => 'number', () => 'The number of times'],
  [/^aggregate\.value(\[\d+\])?$/, () => 'number', () => 'The number to compare with'],
  [/^aggregate\.property$/, () => 'property', () => 'The property that is compared'],
  [/^(count|aggregate)\.op$/, () => 'number', () => 'How the number is compared'],
  [/^window(\.\w+)?$/, () => 'days', () => 'The number of days'],
  [/^where\[(\d+)\]\.property$/, (i) => `filter ${i} property`, (i) => `The property of filter ${i + 1}`],
  [/^where\[(\d+)\]\.value(\[\d+\])?$/, (i) => `filter ${i} value`, (i) => `The value of filter ${i + 1}`],
  [/^where\[(\d+)\]\.op$/, (i) => `filter ${i} value`, (i) => `The comparison of filter ${i + 1}`],
  [/^where(\[\d+\])?$/, () => '', () => 'The filters'],
  [/^field$/, () => 'field', () => 'The field'],
  [/^value(\[\d+\])?$/, () => 'value', () => 'The value'],
  [/^op$/, () => 'value', () => 'The comparison'],
  [/^since$/, () => 'date', () => 'The first date'],
  [/^until$/, () => 'date', () => 'The second date'],
  [/^segment_id$/, () => '', () => 'The segment'],
  [/^list_id$/, () => '', () => 'The list'],
  [/^status$/, () => '', () => 'The consent'],
  [/^channel$/, () => '', () => 'The channel'],
  [/^conditions$/, () => '', () => 'The group'],
]

const listed = (ops: string) =>
  ops
    .split(', ')
    .map((op) => opNames[op as Op] ?? op)
    .join(', ')

/** What the server says of a field, in the words of the builder. */
function reasonWords(reason: string): string {
  return reason
    .replace(/\[low, high\] with low not above high/, 'two values, and the first must not be above the second')
    .replace(/\[low, high\], both included/, 'two values, both included')
    .replace(/^must be the id of an? (segment|list), there is no .*$/, (_, what: string) => `is not there: the ${what} was deleted. Choose another one`)
    .replace(/^must not lead back to the segment itself: .*$/, 'refers back to this segment. Choose another one')
    .replace(/^must be one of (.*) for (an? .*)$/, (_, ops: string, what: string) => `must be one of: ${listed(ops)}. That is what ${what} can be compared by`)
    .replace(/ with exists$/, ' with “is known”')
    .replace(/ with not_exists$/, ' with “is not known”')
    .replace(/exists or not_exists/, '“is known” or “is not known”')
    .replace(/ for (contains|not_contains|starts_with|ends_with|>|>=|<|<=|=|!=), not /, (_, op: string) => ` for “${opNames[op as Op]}”, not `)
    .replace(/ for (contains|not_contains|starts_with|ends_with|before|after)\b/, (_, op: string) => ` for “${opNames[op as Op]}”`)
    .replace(/ with never_subscribed, which has no subscribe date/, ' with “never subscribed to”')
    .replace(/^must be after since$/, 'must be after the first one')
    .replace(/^must be a time, such as .*$/, 'must be a date, such as 2026-01-31')
    .replace(/^must be between -1e18 and 1e18$/, 'must be between −1,000,000,000,000,000,000 and 1,000,000,000,000,000,000')
    .replace(/, 1\/86400000 of a day/, '')
    .replace(/at most 36500$/, 'at most 36,500')
    .replace(/^must be a snake_case key of at most (\d+) bytes, such as "(.*)"$/, 'must be in lower case with words joined by underscores, such as $2, and have at most $1 characters')
    .replace(/^must be a snake_case key; did you mean "(.*)"\?$/, 'must be in lower case with words joined by underscores. Did you mean $1?')
    .replace(/must have at most (\d+) keys/, 'must have at most $1 names joined by dots')
    .replace(/must not have an empty key beside a dot/, 'must have a name on both sides of each dot')
    .replace(/\bgo on behind\b/, 'go on after')
    .replace(/\ba string\b/g, 'a text')
    .replace(/\bstrings\b/g, 'texts')
    .replace(/\ban array\b/g, 'a list')
    .replace(/\ba boolean\b/g, 'yes or no')
    .replace(/\btrue or false\b/g, 'yes or no')
    .replace(/^must be given$|^must not be empty$/, 'is missing')
    .replace(/that fits 64-bit floating point/, 'that is not as long')
    .replace(/; did you mean ([^?]*)\?$/, '. Did you mean $1?')
}

const sentence = (s: string) => (/[.?!]$/.test(s) ? s : `${s}.`)
const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1)

/**
 * A fault or a warning of one condition, without the place of that condition: "count.value must
 * not be negative" says "The number of times must not be negative."
 */
export function faultWords(message: string): Fault {
  const [, path = '', colon = '', rest = ''] = /^([a-z_]+(?:\[\d+\])?(?:\.[a-z_]+(?:\[\d+\])?)*)(:?) (.*)$/s.exec(message) ?? []
  for (const [pattern, place, name] of names) {
    const found = pattern.exec(path)
    if (!found) continue
    const i = Number(found[1] ?? 0)
    // Warnings are sentences of their own behind a colon.
    return { place: place(i), text: sentence(colon ? capital(reasonWords(rest)) : `${name(i)} ${reasonWords(rest)}`) }
  }
  return { place: '', text: sentence(capital(reasonWords(message))) }
}
