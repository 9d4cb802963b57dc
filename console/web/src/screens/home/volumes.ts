export interface Volume {
  event_type: string
  events: number
  series: { start: string; events: number }[]
}

/** The five most frequent types as lines over one time, all others as one. */
export function stacked(types: Volume[], most = 5) {
  const starts = [...new Set(types.flatMap((t) => t.series.map((p) => p.start)))].sort()
  const at = new Map(starts.map((s, i) => [s, i]))
  const sorted = [...types].sort((a, b) => b.events - a.events)
  const line = (label: string, of: Volume[]) => {
    const values = starts.map(() => 0)
    for (const t of of) for (const p of t.series) values[at.get(p.start)!]! += p.events
    return { label, values }
  }
  const series = sorted.slice(0, most).map((t) => line(t.event_type, [t]))
  if (sorted.length > most) series.push(line(`${sorted.length - most} other types`, sorted.slice(most)))
  return { times: starts.map((s) => new Date(s).getTime() / 1000), series }
}
