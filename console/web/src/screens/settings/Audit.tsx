import { Button, Group, NativeSelect, Paper, Stack, Table, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api, whole } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { instant, short } from '@/shared/format'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, Failed, Loading } from '@/shared/states'
import { SettingsPage } from './SettingsPage'

const route = getRouteApi('/shell/settings/audit')
const kinds = ['api_key', 'campaign', 'credential', 'flow', 'list', 'segment', 'sender_domain', 'settings', 'template', 'user', 'webhook']

/** /settings/audit: who changed what, the newest first. */
export function Audit() {
  const { kind, target } = route.useSearch()
  const navigate = route.useNavigate()
  const may = useMay()
  const list = useInfiniteQuery({
    queryKey: ['audit', kind, target],
    queryFn: ({ pageParam, signal }) => whole(api.GET('/console/api/v1/audit', { params: { query: { limit: 50, cursor: pageParam, kind: kind as never, target_id: target } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (p) => p.next ?? undefined,
    enabled: may('settings:read'),
  })
  const all = list.data?.pages.flatMap((p) => p.data) ?? []
  return (
    <SettingsPage section="/settings/audit" title="Audit log">
      <Stack gap="sm">
        <Group>
          <NativeSelect aria-label="Kind" value={kind ?? ''} onChange={(e) => void navigate({ search: { kind: e.currentTarget.value || undefined }, replace: true })} data={[{ value: '', label: 'Everything' }, ...kinds.map((k) => ({ value: k, label: k.replaceAll('_', ' ') }))]} />
          {target && (
            <Button size="xs" variant="default" onClick={() => void navigate({ search: { kind }, replace: true })}>
              Changes of all, not only of {target}
            </Button>
          )}
        </Group>
        {list.isError && <Failed error={list.error} retry={() => void list.refetch()} />}
        {list.isLoading && <Loading what="the changes" />}
        {list.isSuccess && all.length === 0 && <Empty icon="list" title="No change">{kind ? 'Nothing of this kind was changed.' : 'Changes of settings, users, keys, segments and messages are listed here.'}</Empty>}
        {all.length > 0 && (
          <Paper withBorder>
            <ScrollTable label="Table of changes" minWidth={520}>
              <Table verticalSpacing="xs">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>When</Table.Th>
                    <Table.Th>Who</Table.Th>
                    <Table.Th>What</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {all.map((c) => (
                    <Table.Tr key={c._id}>
                      <Table.Td title={instant(c.at)} style={{ whiteSpace: 'nowrap' }}>
                        {short(c.at, Date.now())}
                      </Table.Td>
                      <Table.Td style={{ overflowWrap: 'anywhere' }}>
                        {c.by.name || c.by._id}
                        {c.by.kind === 'key' && (
                          <Text span size="xs" c="dimmed">
                            {' '}
                            (API key)
                          </Text>
                        )}
                      </Table.Td>
                      <Table.Td style={{ overflowWrap: 'anywhere' }}>
                        {c.action.replace(/[._]/g, ' ')} <b>{c.name || c.target_id}</b>
                        {c.fields.length > 0 && (
                          <Text size="xs" c="dimmed">
                            {c.fields.join(', ')}
                          </Text>
                        )}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </ScrollTable>
          </Paper>
        )}
        {list.hasNextPage && (
          <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show older ones
          </Button>
        )}
      </Stack>
    </SettingsPage>
  )
}
