import { Skeleton } from '@mantine/core'
import { lazy, Suspense } from 'react'
import type { CodeProps } from './CodeView'

const View = lazy(() => import('./CodeView'))

/** An editor of JSON or HTML. It is loaded when it is shown first. */
export function Code(props: CodeProps) {
  return (
    <Suspense fallback={<Skeleton h={props.minHeight ?? 200} />}>
      <View {...props} />
    </Suspense>
  )
}
