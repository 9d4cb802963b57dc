import { Table, Text } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, type ReactNode } from 'react'
import { identifierOf, nameOf, type Named } from './person'

export interface Column<P> {
  label: string
  width?: number | string
  render: (person: P) => ReactNode
}

const rowHeight = 44

/**
 * People in rows; only those in view are drawn. `onEnd` is called when the last row comes
 * into view, to read the next page. `link` makes the name a link.
 */
export function PeopleTable<P extends Named>({ people, columns = [], onOpen, onEnd, link, label, maxHeight = 600, minWidth }: { people: P[]; columns?: Column<P>[]; onOpen?: (person: P) => void; onEnd?: () => void; link?: (person: P, name: string) => ReactNode; label: string; maxHeight?: number | string; minWidth?: number }) {
  const parent = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({ count: people.length, getScrollElement: () => parent.current, estimateSize: () => rowHeight, overscan: 12, getItemKey: (i) => people[i]!.profile_id })
  const items = rows.getVirtualItems()
  const last = items.at(-1)?.index ?? -1
  useEffect(() => {
    if (last >= 0 && last >= people.length - 1) onEnd?.()
  }, [last, people.length, onEnd])
  const before = items[0]?.start ?? 0
  const after = rows.getTotalSize() - (items.at(-1)?.end ?? 0)
  return (
    <div ref={parent} style={{ maxHeight, overflow: 'auto' }} tabIndex={0} role="region" aria-label={label}>
      <Table stickyHeader highlightOnHover={onOpen !== undefined || link !== undefined} verticalSpacing={4} miw={minWidth} aria-rowcount={people.length + 1}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Person</Table.Th>
            {columns.map((c) => (
              <Table.Th key={c.label} w={c.width}>
                {c.label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {before > 0 && <tr style={{ height: before }} aria-hidden />}
          {items.map((item) => {
            const p = people[item.index]!
            const name = nameOf(p)
            const id = identifierOf(p)
            return (
              <Table.Tr key={p.profile_id} aria-rowindex={item.index + 2} onClick={onOpen && (() => onOpen(p))} style={{ height: rowHeight, cursor: onOpen ? 'pointer' : undefined }}>
                <Table.Td>
                  {link ? (
                    link(p, name)
                  ) : onOpen ? (
                    <button type="button" className="plain" onClick={(e) => (e.stopPropagation(), onOpen(p))}>
                      {name}
                    </button>
                  ) : (
                    <Text size="sm">{name}</Text>
                  )}
                  {id !== name && (
                    <Text size="xs" c="dimmed" truncate>
                      {id}
                    </Text>
                  )}
                </Table.Td>
                {columns.map((c) => (
                  <Table.Td key={c.label}>{c.render(p)}</Table.Td>
                ))}
              </Table.Tr>
            )
          })}
          {after > 0 && <tr style={{ height: after }} aria-hidden />}
        </Table.Tbody>
      </Table>
    </div>
  )
}
