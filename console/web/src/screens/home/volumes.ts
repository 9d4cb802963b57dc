import { overSpans, type Granularity } from '@/shared/spans'

export interface Volume {
  event_type: string
  events: number
  series: { start: string; events: number }[]
}

/** The most frequent types as series over the whole range, all others as one. */
export function stacked(types: Volume[], range: { from: string; to: string }, by: Granularity, most = 5) {
  const sorted = [...types].sort((a, b) => b.events - a.events)
  const line = (label: string, of: Volume[]) => ({ label, points: of.flatMap((t) => t.series.map((p) => ({ start: p.start, value: p.events }))) })
  const lines = sorted.slice(0, most).map((t) => line(t.event_type, [t]))
  if (sorted.length > most) lines.push(line(`${sorted.length - most} other types`, sorted.slice(most)))
  return overSpans(range, by, lines)
}
