import { describe, expect, it } from 'vitest'
import { diffLines } from '@/shared/diff'
import { causeOf } from './cause'
import { drawable, usualSpan } from './useSegment'

describe('the difference of two definitions', () => {
  const marks = (a: string, b: string) => diffLines(a, b).map((l) => ({ same: ' ', added: '+', removed: '-' })[l.kind] + l.text)
  it('keeps what both have', () => {
    expect(marks('a\nb\nc\nd', 'a\nc\nx\nd')).toEqual([' a', '-b', ' c', '+x', ' d'])
    expect(marks('a', 'a')).toEqual([' a'])
    expect(marks('a\nb', 'c')).toEqual(['-a', '-b', '+c'])
  })
  it('gives both texts back', () => {
    const a = '{\n1\n2\n3\n}'
    const b = '{\n2\n4\n3\n5\n}'
    const lines = diffLines(a, b)
    expect(lines.filter((l) => l.kind !== 'added').map((l) => l.text).join('\n')).toBe(a)
    expect(lines.filter((l) => l.kind !== 'removed').map((l) => l.text).join('\n')).toBe(b)
    expect(lines.filter((l) => l.kind === 'same').length).toBe(4)
  })
})

describe('the spans of a chart', () => {
  it('are never too many', () => {
    const now = Date.parse('2026-11-23T00:00:00Z')
    expect(['2026-11-22', '2026-11-01', '2025-06-01', '2020-01-01'].map((d) => usualSpan(d, now))).toEqual(['hour', 'day', 'week', 'month'])
  })
  it('begin before a young segment, with nobody in it', () => {
    const one = { start: '2026-11-23T07:00:00.000Z', entered: 3, left: 1, members: 2 }
    expect(drawable([one], 'hour').map((s) => [s.start.slice(11, 13), s.members])).toEqual([['04', 0], ['05', 0], ['06', 0], ['07', 2]])
    expect(drawable([one, one, one, one, one], 'hour').length).toBe(5)
  })
})

it('says that somebody entered as the segment was created only where it cannot be a change', () => {
  const made = { created_at: '2026-11-23T07:00:00.000Z', updated_at: '2026-11-23T07:00:00.000Z', definition: { kind: 'attribute' as const, field: 'email', op: 'exists' as const } }
  expect(causeOf('definition', made)).toBe('when the segment was created')
  expect(causeOf('event', made)).toBe('by an event')
  expect(causeOf('definition', { ...made, updated_at: '2026-11-23T08:00:00.000Z' })).toBe('when the segment was created or changed')
  expect(causeOf('definition', { ...made, definition: { kind: 'segment' as const, segment_id: 'seg_1' } })).toBe('when the segment was created or changed')
})
