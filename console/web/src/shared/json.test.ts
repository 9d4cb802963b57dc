import { describe, expect, it } from 'vitest'
import { JsonError, JsonNumber, parseJson, writeJson } from './json'

describe('JSON', () => {
  it.each(['{"a":12345678901234567890.123456789,"b":[1e400,-0,true,null,"ü\\n\\u2028"],"c":{}}', '[]', '"x"', '-1.5E+10'])('keeps every digit: %s', (text) => {
    expect(writeJson(parseJson(text)).replace('\u2028', '\\u2028')).toBe(text)
  })
  it('says where it is wrong', () => {
    for (const [text, at] of [['{"a":1,}', 7], ['{"a" 1}', 5], ['[1 2]', 3], ['{"a":01}', 5], ['{"a":1}x', 7], ['"x', 0], ['', 0], ['{"a":1,"a":2}', 10], ['[nul]', 1]] as const) {
      let wrong: unknown
      try {
        parseJson(text)
      } catch (e) {
        wrong = e
      }
      expect(wrong, text).toBeInstanceOf(JsonError)
      expect((wrong as JsonError).at, text).toBe(at)
    }
  })
  it('does not give names a meaning of their own', () => {
    const o = parseJson('{"__proto__":1,"toString":2}') as Record<string, unknown>
    expect(Object.keys(o)).toEqual(['__proto__', 'toString'])
    expect(o['toString']).toEqual(new JsonNumber('2'))
  })
  it('writes lists of constants in a line', () => {
    expect(writeJson(parseJson('{"a":[1,2],"b":[{"c":1}]}'), 2)).toBe('{\n  "a": [1, 2],\n  "b": [\n    {\n      "c": 1\n    }\n  ]\n}')
  })
})
