/** An event that was stored, or was stored before. */
export interface Stored {
  kind: 'event'
  key: number
  profile_id: string
  event_type: string
  timestamp: string
  outcome: 'accepted' | 'duplicate'
  identity: Identity
  transitions: { segment_id: string; change: 'entered' | 'left' }[]
  properties: Record<string, unknown>
  /** The message as it came: numbers keep their digits in it. */
  text: string
  /** It came while the connection was broken, and was read afterwards: what it moved is not known here. */
  late?: true
}

export interface Refused {
  kind: 'refused'
  key: number
  event_type: string
  timestamp: string
  identity: Identity
  reason: string
  body: string
  body_bytes: number
}

/** A time of which events may be missing, and why. */
export interface Gap {
  kind: 'gap'
  key: number
  from: string
  to: string
  /** How many are missing, where it is known. */
  missed?: number
  /** How many of that time were read afterwards; they stand above. */
  read?: number
}

export interface Identity {
  email?: string
  external_id?: string
  phone?: string
}

export type Entry = Stored | Refused | Gap

/** What is shown, the newest first, and what came while it was paused. */
export interface Log {
  shown: readonly Entry[]
  held: readonly Entry[]
  paused: boolean
  /** How many held entries were let go because too many came, the oldest of them first. */
  lost: number
}

export const empty: Log = { shown: [], held: [], paused: false, lost: 0 }

/** How many entries are shown, and how many may wait while it is paused. */
export const mostShown = 1000
export const mostHeld = 10_000

/** Adds entries, given the oldest first. A paused log holds them, so that none is missing when it goes on. */
export function add(log: Log, entries: readonly Entry[]): Log {
  if (entries.length === 0) return log
  if (!log.paused) return { ...log, shown: [...[...entries].reverse(), ...log.shown].slice(0, mostShown) }
  const held = [...log.held, ...entries]
  const over = Math.max(0, held.length - mostHeld)
  return { ...log, held: held.slice(over), lost: log.lost + over }
}

export const pause = (log: Log): Log => ({ ...log, paused: true })

/** Shows what came meanwhile; where some of it was let go, a gap says so. */
export function resume(log: Log, key: number): Log {
  const first = log.held[0]
  const at = first ? (first.kind === 'gap' ? first.from : first.timestamp) : ''
  const gap: Entry[] = log.lost > 0 ? [{ kind: 'gap', key, from: at, to: at, missed: log.lost }] : []
  return add({ ...log, paused: false, held: [], lost: 0 }, [...gap, ...log.held])
}

/** A refused event comes again each time the stream begins anew; it is the same by its time, reason and body. */
export const sameRefusal = (r: Pick<Refused, 'timestamp' | 'reason' | 'body'>) => `${r.timestamp}\n${r.reason}\n${r.body}`

/** JSON with the keys of objects in order, so that the same value is the same text. */
function ordered(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(ordered)
  if (typeof v !== 'object' || v === null) return v
  return Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, x]) => [k, ordered(x)]))
}

/** What tells events apart that have no id of their own. */
export const sameEvent = (e: Pick<Stored, 'profile_id' | 'event_type' | 'timestamp' | 'properties'>) => `${e.profile_id}\n${e.event_type}\n${e.timestamp}\n${JSON.stringify(ordered(e.properties))}`

/** Those of found that were not seen: of equal events as many as there are more. */
export function unseen<E extends Pick<Stored, 'profile_id' | 'event_type' | 'timestamp' | 'properties'>>(found: readonly E[], seen: readonly string[]): E[] {
  const known = new Map<string, number>()
  for (const s of seen) known.set(s, (known.get(s) ?? 0) + 1)
  return found.filter((e) => {
    const key = sameEvent(e)
    const n = known.get(key) ?? 0
    if (n > 0) known.set(key, n - 1)
    return n === 0
  })
}

/** The value at a path of keys joined by dots. */
export function valueAt(properties: unknown, path: string): unknown {
  let v: unknown = properties
  for (const key of path.split('.')) {
    if (typeof v !== 'object' || v === null) return undefined
    v = (v as Record<string, unknown>)[key]
  }
  return v
}
