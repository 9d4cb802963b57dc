import { expect, test } from 'vitest'
import { addressesIn } from './addresses'

test('addresses are parted by lines, commas, semicolons and spaces, each once', () => {
  expect(addressesIn('ada@example.com\nben@example.com, cleo@example.com;dan@example.com  ADA@example.com\n')).toEqual({ addresses: ['ada@example.com', 'ben@example.com', 'cleo@example.com', 'dan@example.com'], faults: [] })
})

test('what is no address is a fault', () => {
  expect(addressesIn('ada@example.com, ben, @x, a@b@c')).toEqual({ addresses: ['ada@example.com'], faults: ['ben', '@x', 'a@b@c'] })
  expect(addressesIn(' \n, ')).toEqual({ addresses: [], faults: [] })
})

test('angle brackets are left out', () => {
  expect(addressesIn('<ada@example.com>, <ben@example.com>').addresses).toEqual(['ada@example.com', 'ben@example.com'])
})
