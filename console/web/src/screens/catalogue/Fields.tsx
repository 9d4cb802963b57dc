import { Badge, Box, Group, Paper, Progress, Stack, Table, Text, UnstyledButton } from '@mantine/core'
import type { Schemas } from '@/shared/api/client'
import { instant, percent, short } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { ScrollTable } from '@/shared/ScrollTable'
import { driftOf } from './drift'

type Field = Schemas['CatalogField']

/** Properties or attributes, each with types, share, values and drift. One of them can be open. */
export function Fields({ fields, of, lastSeen, open, onOpen }: { fields: Field[]; of: 'events' | 'updates'; lastSeen: string | null; open?: string; onOpen: (path: string | undefined) => void }) {
  return (
    <Paper withBorder>
      <ScrollTable label="Table of fields" minWidth={520}>
        <Table verticalSpacing="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Name</Table.Th>
              <Table.Th>Types</Table.Th>
              <Table.Th w={160}>In how many {of}</Table.Th>
              <Table.Th visibleFrom="sm">Last seen</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {fields.map((f) => {
              const drift = driftOf(f, lastSeen)
              const is = open === f.path
              return [
                <Table.Tr key={f.path}>
                  <Table.Td>
                    <UnstyledButton aria-expanded={is} onClick={() => onOpen(is ? undefined : f.path)}>
                      <Group gap="xs" wrap="nowrap">
                        <Icon name={is ? 'chevronDown' : 'chevronRight'} size={14} />
                        <Text size="sm" fw={600} ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                          {f.path}
                        </Text>
                      </Group>
                    </UnstyledButton>
                    {drift && (
                      <Group gap={4} wrap="nowrap" mt={4} pl={20} align="flex-start">
                        <Icon name="alert" size={14} />
                        <Text size="xs">{drift}</Text>
                      </Group>
                    )}
                  </Table.Td>
                  <Table.Td>
                    <Group gap={4}>
                      {f.types.map((t) => (
                        <Badge key={t.type} title={`${percent(t.share)} of the values of ${f.path}`} size="sm" variant="filled" color={t === f.types[0] ? 'gray.7' : 'red.9'} tt="none">
                          {t.type}
                          {f.types.length > 1 && ` ${percent(t.share)}`}
                        </Badge>
                      ))}
                      {f.element_types.length > 0 && (
                        <Text size="xs" c="dimmed">
                          of {f.element_types.join(', ')}
                        </Text>
                      )}
                    </Group>
                  </Table.Td>
                  <Table.Td>
                    <Text size="xs" className="numbers">
                      {percent(f.share)}
                    </Text>
                    <Progress value={f.share * 100} size={4} aria-label={`Share of ${of} that have ${f.path}`} />
                  </Table.Td>
                  <Table.Td visibleFrom="sm" title={instant(f.last_seen)} style={{ whiteSpace: 'nowrap' }}>
                    {short(f.last_seen, Date.now())}
                  </Table.Td>
                </Table.Tr>,
                is && (
                  <Table.Tr key={f.path + ' values'}>
                    <Table.Td colSpan={4}>
                      <Values f={f} />
                    </Table.Td>
                  </Table.Tr>
                ),
              ]
            })}
          </Table.Tbody>
        </Table>
      </ScrollTable>
    </Paper>
  )
}

function Values({ f }: { f: Field }) {
  return (
    <Stack gap="xs" pl={20} maw={560}>
      <Text size="xs" c="dimmed">
        First seen {instant(f.first_seen)}
      </Text>
      {f.values.length === 0 && <Text size="sm">No value is frequent enough to be kept, or they are longer than 64 bytes.</Text>}
      {f.values.map((v) => (
        <Box key={v.type + v.value}>
          <Group justify="space-between" wrap="nowrap" gap="sm">
            <Text size="sm" truncate ff="monospace">
              {v.type === 'text' ? `“${v.value}”` : v.value}
            </Text>
            <Text size="xs" className="numbers" style={{ whiteSpace: 'nowrap' }}>
              {percent(v.share)} of values
            </Text>
          </Group>
          <Progress value={v.share * 100} size={3} aria-label={`Share of ${v.value}`} />
        </Box>
      ))}
      {f.more_values && (
        <Text size="xs" c="dimmed">
          There are more values; these are the most frequent.
        </Text>
      )}
    </Stack>
  )
}
