import { useSyncExternalStore } from 'react'

/**
 * Whether the server answers. When it does not, its readiness is asked for until it does;
 * then all waiting calls go on, and the page reads everything anew.
 */
let down = false
let timer: ReturnType<typeof setTimeout> | undefined
const watchers = new Set<() => void>()
const returned = new Set<() => void>()

const pause = 1500 // milliseconds between two questions

export function serverIsGone() {
  if (!down) {
    down = true
    watchers.forEach((w) => w())
  }
  timer ??= setTimeout(look, pause)
}

async function look() {
  timer = undefined
  try {
    const res = await fetch('/readyz', { cache: 'no-store' })
    if (!res.ok) throw new Error(res.statusText)
  } catch {
    serverIsGone()
    return
  }
  if (!down) return
  down = false
  watchers.forEach((w) => w())
  returned.forEach((r) => r())
}

/** Calls back each time the server is there again. */
export function onReturn(fn: () => void) {
  returned.add(fn)
  return () => void returned.delete(fn)
}

const subscribe = (w: () => void) => {
  watchers.add(w)
  return () => void watchers.delete(w)
}

export const useServerIsGone = () => useSyncExternalStore(subscribe, () => down)
