import { expect, test } from 'vitest'
import { toCsv } from './csv'

test('cells are quoted where they must be, and no text is a formula', () => {
  expect(toCsv(['a', 'b'], [['x,y', 'say "hi"'], ['=1+1', -5], ['line\nbreak', null]])).toBe('a,b\r\n"x,y","say ""hi"""\r\n\'=1+1,-5\r\n"line\nbreak",\r\n')
})
