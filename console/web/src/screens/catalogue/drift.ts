/** What is known of a property or an attribute. */
export interface FieldFacts {
  path: string
  share: number
  first_seen: string
  last_seen: string
  types: { type: string; share: number }[]
}

/** How a field differs from what one expects of it, in a sentence; null where nothing is wrong. */
export function driftOf(f: FieldFacts, lastSeenOfAll: string | null, day = 86_400_000): string | null {
  const kinds = f.types.filter((t) => t.type !== 'null')
  if (kinds.length > 1) {
    const [main, ...others] = kinds
    const rest = others.map((t) => t.type)
    const list = rest.length > 1 ? `${rest.slice(0, -1).join(', ')} and ${rest.at(-1)}` : rest[0]
    return `Mostly ${main!.type}, also ${list}: conditions compare only values of one type.`
  }
  if (lastSeenOfAll && Date.parse(lastSeenOfAll) - Date.parse(f.last_seen) > 7 * day && f.share > 0.05) return 'Not seen for over a week, though events still come.'
  return null
}
