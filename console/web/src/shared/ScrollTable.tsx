import { Table } from '@mantine/core'
import { useElementSize, useMergedRef } from '@mantine/hooks'
import { useRef, type ReactNode } from 'react'

/**
 * The frame of a table that scrolls sideways where the screen is narrower than minWidth. While it
 * scrolls it takes the focus, so that the arrow keys reach every column, and label names it.
 */
export function ScrollTable({ label, minWidth, children }: { label: string; minWidth: number; children: ReactNode }) {
  const { ref: measure, width } = useElementSize<HTMLDivElement>()
  const element = useRef<HTMLDivElement>(null)
  const ref = useMergedRef(measure, element)
  const scrolls = width > 0 && (width < minWidth || (element.current?.scrollWidth ?? 0) > (element.current?.clientWidth ?? 0))
  return (
    <Table.ScrollContainer ref={ref} type="native" minWidth={minWidth} {...(scrolls && { tabIndex: 0, role: 'region', 'aria-label': label })}>
      {children}
    </Table.ScrollContainer>
  )
}
