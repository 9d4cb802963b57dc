import { afterAll, describe, expect, it } from 'vitest'
import { atEnds, endOf, instantWords, overSpans, spanWords, startOf } from './spans'

const at = (seconds: number[]) => seconds.map((s) => new Date(s * 1000).toISOString().slice(0, 16))

describe('a number that holds at the end of a span', () => {
  it('is drawn at that end, the last one now', () => {
    const points = [{ start: '2026-11-23T14:00:00.000Z', value: 3 }, { start: '2026-11-23T15:00:00.000Z', value: 5 }]
    const plot = atEnds(points, 'hour', '2026-11-23T15:20:00.000Z', 1)
    expect(at(plot.times)).toEqual(['2026-11-23T14:00', '2026-11-23T15:00', '2026-11-23T15:20'])
    expect(plot.values).toEqual([1, 3, 5])
  })
  it('has instants that grow, whatever the clocks say', () => {
    const { times } = atEnds([{ start: '2026-11-23T14:00:00.000Z', value: 3 }], 'day', '2026-11-23T13:00:00.000Z', 0)
    expect(times[1]!).toBeGreaterThan(times[0]!)
    expect(atEnds([], 'day', '2026-11-23T13:00:00.000Z', 0)).toEqual({ times: [], values: [] })
  })
})

describe('numbers of spans', () => {
  it('stand over their span, and over 0 where the server has nothing', () => {
    const plot = overSpans({ from: '2026-11-21T09:30:00Z', to: '2026-11-23T15:20:00Z' }, 'day', [{ label: 'Events', points: [{ start: '2026-11-21T00:00:00.000Z', value: 2 }, { start: '2026-11-23T00:00:00.000Z', value: 7 }] }])
    expect(at(plot.times)).toEqual(['2026-11-21T00:00', '2026-11-22T00:00', '2026-11-23T00:00', '2026-11-24T00:00'])
    expect(plot.series).toEqual([{ label: 'Events', values: [2, 0, 7] }])
  })
  it('begin as those of the server: weeks on Monday, months on the first', () => {
    const words = (ms: number) => new Date(ms).toISOString().slice(0, 10)
    expect(words(startOf(Date.parse('2026-11-22T23:59:00Z'), 'week'))).toBe('2026-11-16')
    expect(words(startOf(Date.parse('2026-11-23T00:00:00Z'), 'week'))).toBe('2026-11-23')
    expect(words(endOf(Date.parse('2026-12-01T00:00:00Z'), 'month'))).toBe('2027-01-01')
    expect(words(startOf(Date.parse('2026-02-28T12:00:00Z'), 'month'))).toBe('2026-02-01')
  })
})

describe('a span in words', () => {
  const zone = process.env.TZ
  afterAll(() => void (process.env.TZ = zone))
  const words = (tz: string, from: string, to: string) => {
    process.env.TZ = tz
    return spanWords(Date.parse(from), Date.parse(to))
  }
  it('names where it begins and ends, in the zone of the reader', () => {
    expect(words('UTC', '2026-11-23T14:00:00Z', '2026-11-23T15:00:00Z')).toBe('23 Nov 2026, 14:00 – 15:00')
    expect(words('UTC', '2026-11-23T00:00:00Z', '2026-11-24T00:00:00Z')).toBe('23 Nov 2026')
    expect(words('UTC', '2026-11-23T00:00:00Z', '2026-11-30T00:00:00Z')).toBe('23 Nov 2026 – 29 Nov 2026')
    expect(words('America/New_York', '2026-11-23T00:00:00Z', '2026-11-24T00:00:00Z')).toBe('22 Nov 2026, 19:00 – 23 Nov 2026, 19:00')
    expect(instantWords(Date.parse('2026-11-23T15:20:00Z'))).toBe('23 Nov 2026, 10:20')
  })
})
