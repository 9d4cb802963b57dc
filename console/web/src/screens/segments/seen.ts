import type { Schemas } from '@/shared/api/client'
import type { Test } from './model'

/**
 * The constants of a comparison that no value seen of the field fits, as far as that is known: only of a field with so
 * few values that all are kept, none of them in a list.
 */
export function unseenValues({ op, values }: Pick<Test, 'op' | 'values'>, known: Pick<Schemas['CatalogField'], 'values' | 'more_values' | 'types'> | undefined): string[] {
  if (!known || known.more_values || known.values.length === 0 || known.types.some((t) => t.type === 'list' || t.type === 'object')) return []
  const fits = (type: string, seen: string, text: string): boolean => {
    if (type === 'number') return Number(seen) === Number(text)
    switch (op) {
      case 'contains':
      case 'not_contains':
        return seen.includes(text)
      case 'starts_with':
        return seen.startsWith(text)
      case 'ends_with':
        return seen.endsWith(text)
      default:
        return seen === text
    }
  }
  if (!['=', '!=', 'in', 'not_in', 'contains', 'not_contains', 'starts_with', 'ends_with'].includes(op)) return []
  return values.filter((v) => v.text.trim() !== '' && v.type !== 'boolean' && !known.values.some((k) => k.type === v.type && fits(v.type, k.value, v.text))).map((v) => v.text)
}

/** The value seen that was probably meant by one that was not: the same in other case, or as another type. */
export const meant = (text: string, known: Pick<Schemas['CatalogField'], 'values'> | undefined): string | undefined => known?.values.find((v) => v.value.toLowerCase() === text.trim().toLowerCase())?.value
