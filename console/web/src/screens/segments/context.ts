import { createContext, useContext } from 'react'
import type { Problems } from './check'
import type { Fault, FaultPlace } from './faultWords'
import type { Group, Node } from './model'

/** What every part of the builder shares. */
export interface Builder {
  root: Group
  edit: (fn: (root: Group) => Group) => void
  problems: Problems
  /** What the server says of a node: that its definition is refused, or probably a mistake. */
  said: Map<string, Fault & { refused: boolean }>
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

/** The id of the message on a condition. */
export const faultId = (node: string) => `fault-${node}`

/** For an input of a condition: the id of the message that says why it is wrong, if it is. */
export function useFaults(node: string): (place: FaultPlace) => string | undefined {
  const { problems, said } = useBuilder()
  const message = said.get(node)
  const place = (problems.get(node) ?? (message?.refused ? message : undefined))?.place
  return (asked) => (place && place === asked ? faultId(node) : undefined)
}
