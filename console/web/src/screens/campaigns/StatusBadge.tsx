import { Badge } from '@mantine/core'
import { statusColours } from './useCampaigns'

export function StatusBadge({ status }: { status: string }) {
  return (
    <Badge size="sm" variant="light" color={statusColours[status] ?? 'gray'} c="var(--mantine-color-text)">
      {status}
    </Badge>
  )
}
