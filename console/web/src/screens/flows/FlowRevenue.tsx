import { Paper, Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { RevenueTable } from '@/shared/RevenueTable'
import { channelNames } from '../segments/fields'

/** What orders brought that belong to messages of the flow; nothing where there are none. */
export function FlowRevenue({ id }: { id: string }) {
  const may = useMay()
  const answer = useQuery({ queryKey: ['flow', id, 'revenue'], queryFn: () => data(api.GET('/console/api/v1/analytics/flows/{id}', { params: { path: { id } } })), enabled: may('analytics:read') })
  if (!answer.data || answer.data.revenue.length === 0) return null
  return (
    <Paper withBorder p="md" mt="md" component="section" aria-label="Revenue">
      <Title order={2} size="h5" mb="xs">
        Revenue
      </Title>
      <Stack gap="md">
        <RevenueTable label="Revenue of the flow" rows={answer.data.revenue_by_currency} />
        <RevenueTable label="Revenue by step" first="Step" rows={answer.data.revenue.map((r) => ({ ...r, name: `${r.step_id} (${channelNames[r.channel] ?? r.channel})` }))} />
      </Stack>
    </Paper>
  )
}
