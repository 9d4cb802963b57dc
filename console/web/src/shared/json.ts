/** JSON that keeps every digit: JavaScript's own numbers lose those of long ids and thresholds. */

/** A number as it was written. */
export class JsonNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Json = null | boolean | number | string | JsonNumber | Json[] | { [key: string]: Json }

const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

export const isNumberText = (text: string) => number.test(text)

/** An error with the place in the text, counted from 0. */
export class JsonError extends Error {
  readonly at: number
  constructor(message: string, at: number) {
    super(message)
    this.at = at
  }
}

/** Reads JSON with every number as a JsonNumber. */
export function parseJson(text: string): Json {
  let at = 0
  const fail = (what: string): never => {
    const before = text.slice(0, at)
    const line = before.split('\n').length
    throw new JsonError(`line ${line}, column ${at - before.lastIndexOf('\n')}: ${what}`, at)
  }
  const space = () => {
    while (/[ \t\r\n]/.test(text[at] ?? '')) at++
  }
  const take = (c: string) => {
    space()
    if (text[at] !== c) fail(`${c} is missing`)
    at++
  }
  const string = (): string => {
    const from = at
    for (at++; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at++
    at++
    try {
      return JSON.parse(text.slice(from, at)) as string
    } catch {
      at = from
      return fail('this text does not end, or has a character that must be escaped')
    }
  }
  const value = (depth: number): Json => {
    if (depth > 200) fail('this is nested too deeply')
    space()
    const c = text[at]
    if (c === undefined) fail('a value is missing at the end')
    if (c === '"') return string()
    if (c === '[') {
      const out: Json[] = []
      at++
      space()
      if (text[at] === ']') return at++, out
      for (;;) {
        out.push(value(depth + 1))
        space()
        if (text[at] === ']') return at++, out
        take(',')
      }
    }
    if (c === '{') {
      const out: { [key: string]: Json } = {}
      at++
      space()
      if (text[at] === '}') return at++, out
      for (;;) {
        space()
        if (text[at] !== '"') fail('a name in quotes is missing')
        const key = string()
        if (Object.hasOwn(out, key)) fail(`the name ${key} is given twice`)
        take(':')
        Object.defineProperty(out, key, { value: value(depth + 1), enumerable: true, configurable: true, writable: true })
        space()
        if (text[at] === '}') return at++, out
        take(',')
      }
    }
    const word = /^[-+.\w]+/.exec(text.slice(at, at + 1200))?.[0] ?? ''
    switch (word) {
      case 'true':
      case 'false':
        at += word.length
        return word === 'true'
      case 'null':
        at += 4
        return null
    }
    if (number.test(word)) {
      at += word.length
      return new JsonNumber(word)
    }
    return fail(`${word || c} is no value`)
  }
  const out = value(0)
  space()
  if (at < text.length) fail('there is something behind the end')
  return out
}

/** Writes JSON; fields that are undefined are left out. indent is the number of spaces, 0 for one line. */
export function writeJson(v: unknown, indent = 0, before = ''): string {
  if (v instanceof JsonNumber) return v.text
  if (v === null || typeof v !== 'object') return JSON.stringify(v) ?? 'null'
  const inside = before + ' '.repeat(indent)
  const [open, close, parts] = Array.isArray(v)
    ? ['[', ']', v.map((x) => writeJson(x, indent, inside))]
    : ['{', '}', Object.entries(v).filter(([, x]) => x !== undefined).map(([k, x]) => JSON.stringify(k) + (indent ? ': ' : ':') + writeJson(x, indent, inside))]
  if (parts.length === 0) return open + close
  const scalars = Array.isArray(v) && v.every((x) => x === null || typeof x !== 'object' || x instanceof JsonNumber)
  if (!indent || scalars) return open + parts.join(indent ? ', ' : ',') + close
  return `${open}\n${inside}${parts.join(`,\n${inside}`)}\n${before}${close}`
}
