import { Paper, Table, type TableTdProps } from '@mantine/core'
import type { ReactNode } from 'react'
import { ScrollTable } from './ScrollTable'

export interface Column<T> {
  title: string
  /** For numbers. */
  right?: boolean
  cell: (row: T) => ReactNode
  /** What else its cells have. */
  td?: (row: T) => TableTdProps
}

/** Cells whose text stays on one line, such as dates. */
export const oneLine = { style: { whiteSpace: 'nowrap' } } as const

/** A list of things of the account as a table, one row each; label names the table. */
export function ListTable<T extends { _id: string }>({ label, minWidth, columns, rows }: { label: string; minWidth: number; columns: Column<T>[]; rows: T[] }) {
  return (
    <Paper withBorder>
      <ScrollTable label={label} minWidth={minWidth}>
        <Table verticalSpacing="xs">
          <Table.Thead>
            <Table.Tr>
              {columns.map((c) => (
                <Table.Th key={c.title} ta={c.right ? 'right' : undefined}>
                  {c.title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={row._id}>
                {columns.map((c) => (
                  <Table.Td key={c.title} ta={c.right ? 'right' : undefined} {...c.td?.(row)}>
                    {c.cell(row)}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollTable>
    </Paper>
  )
}
