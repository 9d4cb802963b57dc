/**
 * Typed search parameters: what a screen shows is in its address, so that a view is a link.
 *
 *   validateSearch: searchOf({ q: text, tab: oneOf('form', 'json'), page: whole })
 *
 * What is missing or cannot be read is undefined.
 */
type Reader<T> = (raw: unknown) => T | undefined

export const text: Reader<string> = (v) => (typeof v === 'string' && v !== '' ? v : typeof v === 'number' || typeof v === 'boolean' ? String(v) : undefined)

export const whole: Reader<number> = (v) => (Number.isSafeInteger(Number(v)) && v !== '' && v !== null ? Number(v) : undefined)

export const flag: Reader<boolean> = (v) => (v === true || v === 'true' ? true : undefined)

export const oneOf =
  <T extends string>(...words: T[]): Reader<T> =>
  (v) => words.find((w) => w === v)

export const texts: Reader<string[]> = (v) => (Array.isArray(v) && v.length > 0 && v.every((x) => typeof x === 'string') ? v : undefined)

export function searchOf<S extends Record<string, Reader<unknown>>>(spec: S) {
  type Search = { [K in keyof S]?: Exclude<ReturnType<S[K]>, undefined> }
  return (raw: Record<string, unknown>): Search => {
    const out: Record<string, unknown> = {}
    for (const key of Object.keys(spec)) {
      const v = spec[key]!(raw[key])
      if (v !== undefined) out[key] = v
    }
    return out as Search
  }
}
