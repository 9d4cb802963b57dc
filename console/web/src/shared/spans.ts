/** Numbers over time: some are of a span, such as entries, others hold at its end, such as members. */

export type Granularity = 'hour' | 'day' | 'week' | 'month'

export interface Plotted {
  label: string
  values: number[]
  colour?: string
}

const hour = 3_600_000
const lengths = { hour, day: 24 * hour, week: 7 * 24 * hour }
const monday = 4 * 24 * hour // the first one after the beginning of 1970

/** When the span begins that an instant is in. Spans begin in UTC, as those of the server do. */
export function startOf(ms: number, by: Granularity): number {
  if (by === 'month') {
    const t = new Date(ms)
    return Date.UTC(t.getUTCFullYear(), t.getUTCMonth(), 1)
  }
  const origin = by === 'week' ? monday : 0
  return origin + Math.floor((ms - origin) / lengths[by]) * lengths[by]
}

/** When the span ends that begins at an instant. */
export function endOf(startMs: number, by: Granularity): number {
  if (by !== 'month') return startMs + lengths[by]
  const t = new Date(startMs)
  return Date.UTC(t.getUTCFullYear(), t.getUTCMonth() + 1, 1)
}

const seconds = (ms: number) => ms / 1000

/**
 * Numbers of spans, for a plot of spans: times has where each span of the range begins and, at
 * last, where the last one ends. The server leaves out spans in which nothing happened; they are 0.
 */
export function overSpans(range: { from: string; to: string }, by: Granularity, lines: { label: string; colour?: string; points: { start: string; value: number }[] }[]): { times: number[]; series: Plotted[] } {
  const to = Date.parse(range.to)
  const times: number[] = []
  const index = new Map<number, number>()
  let at = startOf(Date.parse(range.from), by)
  for (; at < to || times.length === 0; at = endOf(at, by)) {
    index.set(at, times.length)
    times.push(seconds(at))
  }
  const series = lines.map(({ points, ...line }) => {
    const values = times.map(() => 0)
    for (const p of points) {
      const i = index.get(Date.parse(p.start))
      if (i !== undefined) values[i]! += p.value
    }
    return { ...line, values }
  })
  return { times: [...times, seconds(at)], series }
}

/**
 * Numbers that hold at the end of each span, for a plot of instants: each at that end, the last at `now`
 * where its span is not over. `before` holds where the first span begins.
 */
export function atEnds(points: { start: string; value: number }[], by: Granularity, now: string, before: number): { times: number[]; values: number[] } {
  const first = points[0]
  if (!first) return { times: [], values: [] }
  const limit = Date.parse(now)
  const times = [seconds(Date.parse(first.start))]
  const values = [before]
  for (const p of points) {
    const start = Date.parse(p.start)
    // Instants of a plot must grow, also where nothing is known yet of the last span.
    times.push(seconds(Math.max(start + 1, Math.min(endOf(start, by), limit))))
    values.push(p.value)
  }
  return { times, values }
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const two = (n: number) => String(n).padStart(2, '0')
const dayOf = (t: Date) => `${t.getDate()} ${months[t.getMonth()]} ${t.getFullYear()}`
const clockOf = (t: Date) => `${two(t.getHours())}:${two(t.getMinutes())}`

/** 23 Nov 2026, 14:03 in the zone of the browser. */
export function instantWords(ms: number): string {
  const t = new Date(ms)
  return `${dayOf(t)}, ${clockOf(t)}`
}

/** A span in the zone of the browser: 23 Nov 2026, 14:00 – 15:00, or the day alone where it is one there. */
export function spanWords(fromMs: number, toMs: number): string {
  const from = new Date(fromMs)
  const to = new Date(toMs)
  if (clockOf(from) === '00:00' && clockOf(to) === '00:00') {
    const last = new Date(to.getFullYear(), to.getMonth(), to.getDate() - 1)
    return dayOf(last) === dayOf(from) ? dayOf(from) : `${dayOf(from)} – ${dayOf(last)}`
  }
  return dayOf(from) === dayOf(to) ? `${dayOf(from)}, ${clockOf(from)} – ${clockOf(to)}` : `${instantWords(fromMs)} – ${instantWords(toMs)}`
}
