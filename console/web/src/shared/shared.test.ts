import { describe, expect, it } from 'vitest'
import { ago, amount, percent } from './format'
import { flag, oneOf, searchOf, text, texts, whole } from './search'

describe('search parameters', () => {
  const read = searchOf({ q: text, page: whole, tab: oneOf('form', 'json'), only: flag, ids: texts })
  it('are read by their types', () => {
    expect(read({ q: 'ann', page: '3', tab: 'json', only: true, ids: ['a'] })).toEqual({ q: 'ann', page: 3, tab: 'json', only: true, ids: ['a'] })
    expect(read({ q: 42 })).toEqual({ q: '42' })
  })
  it('are left out where they cannot be read', () => {
    expect(read({ q: '', page: 'x', tab: 'tree', only: 'no', ids: [1], other: 1 })).toEqual({})
    expect(read({ page: '' })).toEqual({})
  })
})

describe('numbers for people', () => {
  it('groups the digits of amounts, and rounds none', () => {
    expect(['0.00', '999.99', '1200.00', '-1234567.8912'].map(amount)).toEqual(['0.00', '999.99', '1,200.00', '-1,234,567.8912'])
  })
  it('never shows something as nothing, or less than all as all', () => {
    expect([0, 0.0001, 0.1234, 0.9999, 1].map(percent)).toEqual(['0 %', '< 0.1 %', '12.3 %', '> 99.9 %', '100 %'])
  })
  it('says how long ago', () => {
    const now = Date.parse('2026-01-31T12:00:00Z')
    expect(ago('2026-01-31T11:55:00Z', now)).toBe('5 minutes ago')
    expect(ago('2026-01-28T12:00:00Z', now)).toBe('3 days ago')
  })
})
