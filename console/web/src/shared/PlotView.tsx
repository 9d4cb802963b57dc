import { useComputedColorScheme } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { count } from './format'

export interface PlotProps {
  /** Instants in seconds since 1970, growing. */
  times: number[]
  series: { label: string; values: (number | null)[]; colour?: string }[]
  /** What the plot shows, for screen readers. */
  label: string
  height?: number
  bars?: boolean
}

/** Ticks of time as the console writes dates: spacing in seconds at least, the text, and what is added where a year or a day begins. */
const ticks: (string | number | null)[][] = [
  [31_536_000, '{YYYY}', null, null, null, null, null, null, 1],
  [2_419_200, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [86_400, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
]

/** An instant in the legend; of days and longer spans the day alone. */
const inLegend = (times: number[]) => (times.some((t, i) => i > 0 && t - times[i - 1]! < 80_000) ? '{D} {MMM} {YYYY}, {HH}:{mm}' : '{D} {MMM} {YYYY}')

const palette = ['cyan', 'orange', 'grape', 'lime', 'indigo', 'red']

export default function PlotView({ times, series, label, height = 200, bars = false }: PlotProps) {
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
    const plot = new UPlot(
      {
        width,
        height,
        legend: { show: series.length > 1 },
        cursor: { y: false },
        axes: [{ ...axis, values: ticks }, { ...axis, size: 56, values: (_, ticks) => ticks.map(count) }],
        scales: { x: { range: (_, low, high) => (low === high ? [low - 43_200, high + 43_200] : [low, high]) }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high === low || high == null ? (high ?? 0) + 1 : high * 1.08] } },
        series: [
          { label: 'Time', value: inLegend(times) },
          ...series.map((s, i): UPlot.Series => {
            const stroke = colour(`${s.colour ?? palette[i % palette.length]}-${scheme === 'dark' ? 4 : 8}`)
            return { label: s.label, stroke, fill: bars ? stroke : `${stroke}18`, width: 1.6, points: { show: false }, paths: bars ? UPlot.paths.bars!({ size: [0.7, 40] }) : undefined }
          }),
        ],
      },
      [times, ...series.map((s) => s.values)],
      parent.current,
    )
    return () => plot.destroy()
  }, [times, series, width, height, bars, scheme])
  return (
    <div ref={ref} role="img" aria-label={label}>
      <div ref={parent} />
    </div>
  )
}
