import { useComputedColorScheme } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { count } from './format'
import { instantWords, spanWords, type Plotted } from './spans'

export interface PlotProps {
  /** Instants in seconds since 1970, growing: those of the values; with spans, where each begins and at last where the last one ends. */
  times: number[]
  series: Plotted[]
  /** What the plot shows, for screen readers. */
  label: string
  height?: number
  /** The values are of spans and are drawn over them: one series as bars, several as steps. Otherwise each holds at its instant. */
  spans?: boolean
}

/** Ticks of time as the console writes dates: spacing in seconds at least, the text, and what is added where a year or a day begins. */
const ticks: (string | number | null)[][] = [
  [31_536_000, '{YYYY}', null, null, null, null, null, null, 1],
  [2_419_200, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [86_400, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
]

const palette = ['cyan', 'orange', 'grape', 'lime', 'indigo', 'red']

export default function PlotView({ times, series, label, height = 200, spans = false }: PlotProps) {
  const { ref, width } = useElementSize<HTMLDivElement>()
  const parent = useRef<HTMLDivElement>(null)
  const scheme = useComputedColorScheme('light')
  useEffect(() => {
    if (!width || !parent.current) return
    const style = getComputedStyle(document.documentElement)
    const colour = (name: string) => style.getPropertyValue(`--mantine-color-${name}`).trim()
    const text = colour('dimmed')
    const grid = { stroke: colour('default-border'), width: 1 }
    const axis = { stroke: text, grid, ticks: grid, font: '11px system-ui, sans-serif' }
    const bars = spans && series.length === 1
    const paths = bars ? UPlot.paths.bars!({ size: [1, Infinity], align: 1, gap: 1 }) : spans ? UPlot.paths.stepped!({ align: 1 }) : undefined
    const last = times.length - (spans ? 2 : 1)
    // The span under the pointer, and not the one that begins nearest to it.
    const under = (_: UPlot, __: number, nearest: number, x: number) => Math.max(0, Math.min(last, times[nearest]! > x ? nearest - 1 : nearest))
    const plot = new UPlot(
      {
        width,
        height,
        cursor: spans ? { y: false, dataIdx: under, points: { show: false } } : { y: false },
        axes: [{ ...axis, values: ticks }, { ...axis, size: 56, values: (_, ticks) => ticks.map(count) }],
        scales: { x: { range: (_, low, high) => (low === high ? [low - 43_200, high + 43_200] : [low, high]) }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high === low || high == null ? (high ?? 0) + 1 : high * 1.08] } },
        series: [
          { label: 'Time', value: (_, __, ___, i) => (i === null || i === undefined ? '–' : spans ? spanWords(times[i]! * 1000, times[i + 1]! * 1000) : instantWords(times[i]! * 1000)) },
          ...series.map((s, i): UPlot.Series => {
            const stroke = colour(`${s.colour ?? palette[i % palette.length]}-${scheme === 'dark' ? 4 : 8}`)
            return { label: s.label, stroke, fill: bars ? stroke : `${stroke}18`, width: bars ? 0 : 1.6, points: { show: false }, paths, value: (_, v) => (v === null || v === undefined ? '–' : count(v)) }
          }),
        ],
      },
      // A step goes on to the end of its span, so the last one is given there too.
      [times, ...series.map((s) => (spans ? [...s.values, bars ? null : s.values.at(-1)!] : s.values))],
      parent.current,
    )
    return () => plot.destroy()
  }, [times, series, width, height, spans, scheme])
  return (
    <div ref={ref} role="img" aria-label={label}>
      <div ref={parent} />
    </div>
  )
}
