import { useCallback, useReducer } from 'react'

interface Past<T> {
  now: T
  before: T[]
  after: T[]
}

type Step<T> = { do: (now: T) => T } | 'undo' | 'redo' | { reset: T }

const most = 200 // steps that can be taken back

function reduce<T>(s: Past<T>, step: Step<T>): Past<T> {
  if (step === 'undo') {
    const last = s.before.at(-1)
    return last === undefined ? s : { now: last, before: s.before.slice(0, -1), after: [s.now, ...s.after] }
  }
  if (step === 'redo') {
    const [next, ...after] = s.after
    return next === undefined ? s : { now: next, before: [...s.before, s.now], after }
  }
  if ('reset' in step) return { now: step.reset, before: [], after: [] }
  const now = step.do(s.now)
  return now === s.now ? s : { now, before: [...s.before, s.now].slice(-most), after: [] }
}

/** A value whose changes can be taken back. */
export function useUndo<T>(first: () => T) {
  const [s, go] = useReducer(reduce<T>, null, () => ({ now: first(), before: [], after: [] }))
  const edit = useCallback((fn: (now: T) => T) => go({ do: fn }), [])
  const undo = useCallback(() => go('undo'), [])
  const redo = useCallback(() => go('redo'), [])
  return { value: s.now, edit, undo, redo, canUndo: s.before.length > 0, canRedo: s.after.length > 0 }
}
