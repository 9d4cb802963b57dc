import { useCallback, useEffect, useRef, useState } from 'react'
import { useStream, type StreamState } from '@/shared/useStream'
import { add, empty, pause, resume, sameEvent, sameRefusal, unseen, type Entry, type Log, type Refused, type Stored } from './log'
import { readMissed } from './readMissed'

const flushEvery = 100 // milliseconds between two repaints while events come
const overlap = 5 // seconds before the last sign of life that are read again
const remembered = 3000 // events that are known to have been shown

/**
 * The events of an address of the live stream, as a log that can be paused. After a broken
 * connection the events of these types that came meanwhile are read; null where that is not
 * possible, because of filters that only the stream has.
 */
export function useLive(address: string, missedTypes: string[] | null) {
  const [log, setLog] = useState<Log>(empty)
  const waiting = useRef<Entry[]>([])
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const keys = useRef(0)
  const refusals = useRef(new Set<string>())
  const seen = useRef<string[]>([])
  const dropped = useRef(0)
  // When the connection broke, and the last sign of life before: until what was missed is read, however often it breaks meanwhile.
  const broken = useRef<{ at: number; since: number } | null>(null)
  const lastSign = useRef(0)
  // While what was missed is read, what comes is kept back, so that all is in order.
  const reading = useRef(false)
  const types = useRef(missedTypes)
  types.current = missedTypes
  const take = useCallback((...entries: Entry[]) => {
    waiting.current.push(...entries)
    if (reading.current) return
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      if (reading.current) return
      const entries = waiting.current
      waiting.current = []
      setLog((l) => add(l, entries))
    }, flushEvery)
  }, [])
  useEffect(() => {
    // Another filter is another log; a pause stays.
    waiting.current = []
    refusals.current.clear()
    seen.current = []
    dropped.current = 0
    broken.current = null
    lastSign.current = Date.now()
    reading.current = false
    setLog((l) => ({ ...empty, paused: l.paused }))
    return () => {
      clearTimeout(timer.current)
      timer.current = undefined
    }
  }, [address])
  const now = () => new Date().toISOString()
  const state: StreamState = useStream(address, {
    event: (data, _, text) => {
      lastSign.current = Date.now()
      const e: Stored = { ...(data as Omit<Stored, 'kind' | 'key' | 'text'>), kind: 'event', key: keys.current++, text }
      if (e.outcome === 'accepted') {
        seen.current.push(sameEvent(e))
        if (seen.current.length > 2 * remembered) seen.current.splice(0, remembered)
      }
      take(e)
    },
    refused: (data) => {
      const r = data as Omit<Refused, 'kind' | 'key'>
      const same = sameRefusal(r)
      if (refusals.current.has(same)) return
      if (refusals.current.size > 5000) refusals.current.clear()
      refusals.current.add(same)
      take({ ...r, kind: 'refused', key: keys.current++ })
    },
    dropped: (data) => {
      const { count } = data as { count: number }
      const at = now()
      take({ kind: 'gap', key: keys.current++, from: at, to: at, missed: count - dropped.current })
      dropped.current = count
    },
  })
  useEffect(() => {
    if (state === 'waiting') broken.current ??= { at: Date.now(), since: lastSign.current }
    if (state !== 'open') return
    const then = broken.current
    if (then === null) {
      lastSign.current = Date.now()
      return
    }
    const from = new Date(then.at).toISOString()
    const abort = new AbortController()
    const over = (...entries: Entry[]) => {
      broken.current = null
      dropped.current = 0
      lastSign.current = Date.now()
      reading.current = false
      const later = waiting.current
      waiting.current = []
      take(...entries, ...later)
    }
    const gap = { kind: 'gap', from, to: now() } as const
    if (types.current === null) {
      over({ ...gap, key: keys.current++ })
      return
    }
    reading.current = true
    readMissed((Date.now() - then.since) / 1000 + overlap, types.current, abort.signal)
      .then(({ events, total }) => {
        // Some that came by the stream since it is open again are among them.
        const missed = unseen(events, seen.current)
        seen.current.push(...missed.map(sameEvent))
        const left = total - events.length
        over(
          { ...gap, key: keys.current++, read: missed.length, ...(left > 0 && { missed: left }) },
          ...missed.map((e): Stored => ({ ...e, kind: 'event', outcome: 'accepted', transitions: [], late: true, key: keys.current++ })),
        )
      })
      .catch(() => {
        if (!abort.signal.aborted) over({ ...gap, key: keys.current++ })
      })
    return () => {
      // It broke again, or is another log: what was missed is read at the next opening.
      abort.abort()
      reading.current = false
    }
  }, [state, take])
  return {
    log,
    state,
    pause: useCallback(() => setLog(pause), []),
    resume: useCallback(() => setLog((l) => resume(l, keys.current++)), []),
    clear: useCallback(() => setLog((l) => ({ ...empty, paused: l.paused })), []),
  }
}
