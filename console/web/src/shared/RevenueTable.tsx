import { Table } from '@mantine/core'
import { amount, count } from './format'
import { ScrollTable } from './ScrollTable'

type Row = { name?: string; channel?: string; currency: string; orders: number; total: string; refunded: string; revenue: string; average_order: string }

/** Revenue by currency, which is never added up; with a name for each row where first titles them. */
export function RevenueTable({ label, first, rows }: { label: string; first?: string; rows: Row[] }) {
  return (
    <ScrollTable label={label} minWidth={520}>
      <Table verticalSpacing={6} aria-label={label}>
        <Table.Thead>
          <Table.Tr>
            {first && <Table.Th>{first}</Table.Th>}
            <Table.Th>Currency</Table.Th>
            <Table.Th ta="right">Orders</Table.Th>
            <Table.Th ta="right">Total</Table.Th>
            <Table.Th ta="right">Refunded</Table.Th>
            <Table.Th ta="right">Revenue</Table.Th>
            <Table.Th ta="right">Average order</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((r) => (
            <Table.Tr key={`${r.name} ${r.channel} ${r.currency}`}>
              {first && <Table.Td miw={110}>{r.name}</Table.Td>}
              <Table.Td>{r.currency}</Table.Td>
              <Table.Td ta="right" className="numbers">
                {count(r.orders)}
              </Table.Td>
              {[r.total, r.refunded, r.revenue, r.average_order].map((x, i) => (
                <Table.Td key={i} ta="right" className="numbers">
                  {amount(x)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollTable>
  )
}
