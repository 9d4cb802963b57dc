import { Button, Group, Paper, Stack, Table, Text, Title } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { api, data, type Schemas } from '@/shared/api/client'
import { amount, count, instant } from '@/shared/format'
import { AnchorLink } from '@/shared/links'
import { RevenueTable } from '@/shared/RevenueTable'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, QueryView } from '@/shared/states'

type Order = Schemas['Order']

/** What the person bought, and the newest cart. */
export function OrdersTab({ id }: { id: string }) {
  const pages = useInfiniteQuery({
    queryKey: ['person', id, 'orders'],
    queryFn: ({ pageParam }) => data(api.GET('/console/api/v1/profiles/{id}/orders', { params: { path: { id }, query: { limit: 50, ...(pageParam && { cursor: pageParam }) } } })),
    initialPageParam: '',
    getNextPageParam: (page) => page.next ?? undefined,
  })
  return (
    <QueryView query={pages} what="the orders">
      {(d) => {
        const first = d.pages[0]!
        const orders = d.pages.flatMap((p) => p.orders)
        if (orders.length === 0 && !first.cart)
          return (
            <Empty icon="list" title="There is no order yet">
              Orders come by the event order_placed, carts by cart_updated.
            </Empty>
          )
        return (
          <Stack gap="md">
            {first.revenue.length > 0 && (
              <Paper withBorder p="md" component="section" aria-label="Revenue">
                <Title order={2} size="h5" mb="xs">
                  Revenue
                </Title>
                <RevenueTable label="Revenue of the person" rows={first.revenue} />
              </Paper>
            )}
            {first.cart && (
              <Paper withBorder p="md" component="section" aria-label="Cart">
                <Group justify="space-between">
                  <Title order={2} size="h5">
                    Newest cart
                  </Title>
                  <Text size="sm">{first.cart.ordered ? 'An order followed' : 'No order followed yet'}</Text>
                </Group>
                <Text size="sm" c="dimmed">
                  {instant(first.cart.updated_at)}: {count(first.cart.item_count)} {first.cart.item_count === 1 ? 'item' : 'items'}, {amount(first.cart.total)} {first.cart.currency}
                </Text>
              </Paper>
            )}
            {orders.length > 0 && <Orders list={orders} />}
            {pages.hasNextPage && (
              <Button variant="default" onClick={() => void pages.fetchNextPage()} loading={pages.isFetchingNextPage}>
                Older orders
              </Button>
            )}
          </Stack>
        )
      }}
    </QueryView>
  )
}

function Orders({ list }: { list: Order[] }) {
  return (
    <Paper withBorder>
      <ScrollTable label="Table of orders" minWidth={560}>
        <Table verticalSpacing={6} aria-label="Orders">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Order</Table.Th>
              <Table.Th>Time</Table.Th>
              <Table.Th ta="right">Total</Table.Th>
              <Table.Th ta="right">Refunded</Table.Th>
              <Table.Th>Attributed to</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {list.map((o) => (
              <Table.Tr key={o.order_id}>
                <Table.Td style={{ overflowWrap: 'anywhere' }}>{o.order_id}</Table.Td>
                <Table.Td>{instant(o.ordered_at)}</Table.Td>
                <Table.Td ta="right" className="numbers">
                  {amount(o.total)} {o.currency}
                </Table.Td>
                <Table.Td ta="right" className="numbers">
                  {amount(o.refunded)}
                </Table.Td>
                <Table.Td>
                  <Source of={o.attributed_to} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollTable>
    </Paper>
  )
}

function Source({ of }: { of: Order['attributed_to'] }) {
  if (!of) return <>–</>
  const after = of.kind === 'click' ? 'click' : 'open'
  if (of.campaign_id)
    return (
      <AnchorLink to="/campaigns/$id" params={{ id: of.campaign_id }} size="sm">
        {after} in a campaign
      </AnchorLink>
    )
  return of.flow_id ? (
    <AnchorLink to="/flows/$id" params={{ id: of.flow_id }} size="sm">
      {after} in a flow
    </AnchorLink>
  ) : (
    <>–</>
  )
}
