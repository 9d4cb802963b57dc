import { useEffect, useRef, useState } from 'react'
import { useStream } from './useStream'

/**
 * Calls refresh after events of a live stream, at most once in `rest` milliseconds. From an event on,
 * the stream is closed for that time, so that an account with many events sends one of them and not
 * all; what came meanwhile is in what refresh reads once the stream is open again.
 */
export function useRefresh(address: string | null, refresh: () => void, rest: number) {
  const [resting, setResting] = useState(false)
  const now = useRef(refresh)
  now.current = refresh
  const due = useRef(false)
  const state = useStream(resting ? null : address, {
    event: () => {
      due.current = true
      setResting(true)
    },
  })
  useEffect(() => {
    if (!resting) return
    const timer = setTimeout(() => setResting(false), rest)
    return () => clearTimeout(timer)
  }, [resting, rest])
  useEffect(() => {
    if (state !== 'open' || !due.current) return
    due.current = false
    now.current()
  }, [state])
}
