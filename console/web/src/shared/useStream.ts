import { useEffect, useRef, useState } from 'react'
import { serverIsGone } from './api/connection'
import { sessionIsOver } from './api/session'

export type StreamState = 'connecting' | 'open' | 'waiting' | 'closed'

/**
 * Reads a stream of server-sent events as long as the component is shown.
 *
 *   const state = useStream(paused ? null : '/console/api/v1/events/live', { event: (data) => …, refused: … })
 *
 * Each handler takes the parsed data, the id and the text of a message of its name. After a broken
 * connection it goes on behind the last id (Last-Event-ID through `resume`), first at
 * once and then after growing pauses. A null address closes the stream.
 */
export function useStream(
  address: string | null,
  handlers: Record<string, (data: unknown, id: string, text: string) => void>,
  resume: (address: string, lastId: string) => string = (a, id) => `${a}${a.includes('?') ? '&' : '?'}after=${encodeURIComponent(id)}`,
): StreamState {
  const [state, setState] = useState<StreamState>('closed')
  const now = useRef({ handlers, resume })
  now.current = { handlers, resume }
  const names = Object.keys(handlers).sort().join(' ')
  useEffect(() => {
    if (address === null) {
      setState('closed')
      return
    }
    let source: EventSource | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let lastId = ''
    let failures = 0
    let over = false
    const open = () => {
      setState('connecting')
      source = new EventSource(lastId ? now.current.resume(address, lastId) : address)
      source.onopen = () => {
        failures = 0
        setState('open')
      }
      for (const name of names.split(' ')) {
        source.addEventListener(name, (e) => {
          const m = e as MessageEvent<string>
          if (m.lastEventId) lastId = m.lastEventId
          now.current.handlers[name]?.(JSON.parse(m.data), m.lastEventId, m.data)
        })
      }
      source.addEventListener('end', again)
      source.onerror = again
    }
    // Browsers do not open a stream again that was answered 503, so it is done here.
    const again = () => {
      if (over) return
      source?.close()
      setState('waiting')
      // Behind the sign-in the stream is refused, and opened again after it.
      if (failures > 1 && !sessionIsOver()) serverIsGone()
      timer = setTimeout(open, Math.min(200 * 2 ** failures++, 5000))
    }
    open()
    return () => {
      over = true
      clearTimeout(timer)
      source?.close()
    }
  }, [address, names])
  return state
}
