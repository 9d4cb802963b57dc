import { Badge, Button, Table } from '@mantine/core'
import { ago, date, instant } from '@/shared/format'

/** What the rows of API keys and of write keys have in common: when the key was made and used, and whether it holds. onRevoke is absent where one may not revoke it. */
export function KeyCells({ k, label, busy, onRevoke }: { k: { created_at: string; last_used_at: string | null; revoked: boolean }; label: string; busy: boolean; onRevoke?: () => void }) {
  return (
    <>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>{date(k.created_at)}</Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }} title={k.last_used_at ? instant(k.last_used_at) : undefined}>
        {k.last_used_at ? ago(k.last_used_at, Date.now()) : 'never'}
      </Table.Td>
      <Table.Td ta="right">
        {k.revoked ? (
          <Badge color="gray.7" variant="filled" tt="none">
            revoked
          </Badge>
        ) : (
          onRevoke && (
            <Button size="compact-sm" variant="default" loading={busy} onClick={onRevoke} aria-label={label}>
              Revoke
            </Button>
          )
        )}
      </Table.Td>
    </>
  )
}
