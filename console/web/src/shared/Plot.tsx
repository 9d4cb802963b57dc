import { Skeleton } from '@mantine/core'
import { lazy, Suspense } from 'react'
import type { PlotProps } from './PlotView'

const View = lazy(() => import('./PlotView'))

/** A plot of numbers over time. It is loaded when it is shown first. */
export function Plot(props: PlotProps) {
  return (
    <Suspense fallback={<Skeleton h={props.height ?? 200} />}>
      <View {...props} />
    </Suspense>
  )
}
