import { createContext, useContext } from 'react'
import type { Problems } from './check'
import type { Group, Node } from './model'

/** What every part of the builder shares. */
export interface Builder {
  root: Group
  edit: (fn: (root: Group) => Group) => void
  problems: Problems
  /** What the server says of a node: that its definition is refused, or probably a mistake. */
  said: Map<string, { text: string; refused: boolean }>
  counts: Map<string, { count: number; without: number }>
  /** Older counts are shown until those of the present definition are there. */
  stale: boolean
  /** The segment that is edited, which may not refer to itself; "" for a new one. */
  segmentId: string
  dragging: string | null
  setDragging: (id: string | null) => void
  /** Moves the focus to a node once it is drawn. */
  focus: (id: string) => void
}

export const BuilderContext = createContext<Builder | null>(null)

export function useBuilder(): Builder {
  const b = useContext(BuilderContext)
  if (!b) throw new Error('outside of a builder')
  return b
}

/** Changes one node of a kind. */
export type Change<N extends Node> = (fn: (n: N) => N) => void
