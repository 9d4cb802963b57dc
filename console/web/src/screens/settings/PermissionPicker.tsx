import { Button, Checkbox, Group, Table, Text } from '@mantine/core'
import { useSession } from '@/shared/api/session'

const names: Record<string, string> = { contacts: 'People', lists: 'Lists', segments: 'Segments', campaigns: 'Campaigns', flows: 'Flows', templates: 'Templates', push: 'Push messages', analytics: 'Analytics', events: 'Events and catalogue', settings: 'Settings', users: 'Users', api_keys: 'API keys', billing: 'Billing' }

/** Areas of people alone: the server gives none of their permissions to an API key. */
const peopleOnly = ['settings', 'users', 'api_keys', 'billing']

/** The permissions among them that an API key can hold. */
export const forKeys = (permissions: readonly string[]) => permissions.filter((p) => !peopleOnly.includes(p.split(':')[0]!))

/** What a key or a user may do. Only what the person holds themselves, among those that from leaves, can be chosen. */
export function PermissionPicker({ value, onChange, from = (all) => [...all] }: { value: string[]; onChange: (v: string[]) => void; from?: (permissions: readonly string[]) => string[] }) {
  const own = from(useSession().data?.permissions ?? [])
  const all = [...new Set([...own, ...value])]
  const areas = [...new Set(all.map((p) => p.split(':')[0]!))]
  const set = (p: string, on: boolean) => onChange(on ? [...value, p] : value.filter((x) => x !== p))
  const box = (area: string, verb: string) => {
    const p = `${area}:${verb}`
    if (!all.includes(p)) return null
    return <Checkbox checked={value.includes(p)} disabled={!own.includes(p)} onChange={(e) => set(p, e.currentTarget.checked)} aria-label={`${names[area] ?? area}: ${verb}`} size="xs" />
  }
  return (
    <div>
      <Group gap="xs" mb={4}>
        <Text size="sm" fw={500}>
          Permissions
        </Text>
        <Button size="compact-xs" variant="subtle" onClick={() => onChange(own)}>
          All
        </Button>
        <Button size="compact-xs" variant="subtle" onClick={() => onChange(own.filter((p) => p.endsWith(':read')))}>
          Read only
        </Button>
        <Button size="compact-xs" variant="subtle" onClick={() => onChange([])}>
          None
        </Button>
      </Group>
      <Table verticalSpacing={2} withTableBorder>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Area</Table.Th>
            <Table.Th w={70}>Read</Table.Th>
            <Table.Th w={70}>Write</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {areas.map((a) => (
            <Table.Tr key={a}>
              <Table.Td>{names[a] ?? a}</Table.Td>
              <Table.Td>{box(a, 'read')}</Table.Td>
              <Table.Td>{box(a, 'write')}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}

/** Permissions in a few words. */
export function inShort(permissions: readonly string[]): string {
  if (permissions.length === 0) return 'none'
  const areas = new Map<string, string[]>()
  for (const p of permissions) {
    const [area = '', verb = ''] = p.split(':')
    areas.set(area, [...(areas.get(area) ?? []), verb])
  }
  const writes = [...areas].filter(([, v]) => v.includes('write')).map(([a]) => (names[a] ?? a).toLowerCase())
  const reads = [...areas].filter(([, v]) => !v.includes('write')).map(([a]) => (names[a] ?? a).toLowerCase())
  if (writes.length === Object.keys(names).length) return 'all'
  return [writes.length > 0 && `write ${writes.join(', ')}`, reads.length > 0 && `read ${reads.join(', ')}`].filter(Boolean).join('; ')
}
