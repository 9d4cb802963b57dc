import { Button, Group, NativeSelect, Paper, SegmentedControl, Stack, Table, Text } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { count, instant, short } from '@/shared/format'
import { AnchorLink } from '@/shared/links'
import { identifierOf, nameOf } from '@/shared/person'
import { ScrollTable } from '@/shared/ScrollTable'
import { Failed, Loading } from '@/shared/states'

/** Pages that are read without being asked for when few are found at a step. */
const patience = 25

function Person({ id }: { id: string }) {
  const may = useMay()
  const p = useQuery({ queryKey: ['profile', id], queryFn: () => data(api.GET('/console/api/v1/profiles/{id}', { params: { path: { id } } })), enabled: may('contacts:read'), staleTime: 60_000 })
  return (
    <AnchorLink to="/people/$id" params={{ id }} search={{ tab: 'flows' }} size="sm">
      {p.data ? (nameOf(p.data) === identifierOf(p.data) ? nameOf(p.data) : `${nameOf(p.data)} (${identifierOf(p.data)})`) : id}
    </AnchorLink>
  )
}

/** The enrolments of a flow page by page; with a step of those who are there now. */
function useEnrolments(id: string, step: string | undefined, status: 'all' | 'in_progress', limit: number) {
  const pages = useInfiniteQuery({
    queryKey: ['flow', id, 'enrolments', step ?? '', status],
    queryFn: ({ pageParam, signal }) => data(api.GET('/console/api/v1/flows/{id}/enrolments', { params: { path: { id }, query: { ...(step ? { step } : { status }), limit, cursor: pageParam } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
  })
  const rows: Schemas['Enrolment'][] = pages.data?.pages.flatMap((p) => p.enrolments) ?? []
  const read = pages.data?.pages.length ?? 0
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && rows.length < limit && read < patience) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, rows.length, limit, read, fetchNextPage])
  return { pages, rows }
}

/** Who is at a step now and until when: the first of them, and a link to all. */
export function HereNow({ id, step }: { id: string; step: string }) {
  const { pages, rows } = useEnrolments(id, step, 'in_progress', 10)
  return (
    <Stack gap="xs">
      <Group justify="space-between" gap="xs">
        <Text size="sm" fw={600}>
          Here now, and until when
        </Text>
        {pages.data && <AsOf at={new Date(pages.dataUpdatedAt).toISOString()} />}
      </Group>
      {pages.isError ? (
        <Failed error={pages.error} retry={() => void pages.refetch()} />
      ) : !pages.data || (rows.length === 0 && pages.isFetchingNextPage) ? (
        <Loading what="the enrolments at this step" />
      ) : rows.length === 0 && !pages.hasNextPage ? (
        <Text size="sm" c="dimmed">
          Nobody is here now.
        </Text>
      ) : (
        <Rows rows={rows.slice(0, 10)} brief />
      )}
      {(rows.length > 0 || pages.hasNextPage) && (
        <AnchorLink to="/flows/$id" params={{ id }} search={{ view: 'enrolments', step }} size="sm">
          {rows.length > 10 || pages.hasNextPage ? 'All who are here' : 'In the list of enrolments'}
        </AnchorLink>
      )}
    </Stack>
  )
}

/** The enrolments of a flow, of all its steps or of one. */
export function Enrolments({ id, step, steps, onStep }: { id: string; step: string | undefined; steps: { id: string; name: string }[]; onStep: (step: string | undefined) => void }) {
  const [status, setStatus] = useState<'all' | 'in_progress'>('all')
  const at = steps.some((s) => s.id === step) ? step : undefined
  const { pages, rows } = useEnrolments(id, at, status, at ? 100 : 25)
  const nameOfStep = (s: string) => steps.find((x) => x.id === s)?.name ?? s
  return (
    <Stack gap="xs">
      <Group align="flex-end" gap="sm">
        <NativeSelect label="Step" value={at ?? ''} onChange={(e) => onStep(e.currentTarget.value || undefined)} data={[{ value: '', label: 'Any' }, ...steps.map((s) => ({ value: s.id, label: `${s.name} (${s.id})` }))]} />
        {!at && <SegmentedControl aria-label="Which enrolments" value={status} onChange={(v) => setStatus(v as typeof status)} data={[{ value: 'all', label: 'All' }, { value: 'in_progress', label: 'In it now' }]} />}
        {pages.data && (
          <Text size="sm" c="dimmed" aria-live="polite" data-testid="found">
            {pages.hasNextPage ? `The first ${count(rows.length)}` : `${count(rows.length)} ${rows.length === 1 ? 'enrolment' : 'enrolments'}`} <AsOf at={new Date(pages.dataUpdatedAt).toISOString()} />
          </Text>
        )}
      </Group>
      {pages.isError && rows.length === 0 ? (
        <Failed error={pages.error} retry={() => void pages.refetch()} />
      ) : !pages.data || (rows.length === 0 && pages.isFetchingNextPage) ? (
        <Loading what="the enrolments" />
      ) : rows.length === 0 && !pages.hasNextPage ? (
        <Text size="sm" c="dimmed">
          {at ? 'Nobody is at this step now.' : status === 'in_progress' ? 'Nobody is in this flow now.' : 'Nobody was in this flow yet.'}
        </Text>
      ) : (
        <Rows rows={rows} nameOfStep={nameOfStep} />
      )}
      {pages.hasNextPage && (
        <Button variant="default" size="xs" onClick={() => void pages.fetchNextPage()} loading={pages.isFetchingNextPage} style={{ alignSelf: 'flex-start' }}>
          Show more
        </Button>
      )}
    </Stack>
  )
}

function Rows({ rows, brief = false, nameOfStep = (s) => s }: { rows: Schemas['Enrolment'][]; brief?: boolean; nameOfStep?: (id: string) => string }) {
  return (
    <Paper withBorder>
      <ScrollTable label="Table of enrolments" minWidth={brief ? 240 : 560}>
        <Table verticalSpacing={6}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Person</Table.Th>
              {!brief && <Table.Th>Status</Table.Th>}
              {!brief && <Table.Th>Step</Table.Th>}
              <Table.Th>Until</Table.Th>
              {!brief && <Table.Th>Began</Table.Th>}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((e) => (
              <Table.Tr key={`${e.profile_id} ${e.number}`}>
                <Table.Td>
                  <Person id={e.profile_id} />
                </Table.Td>
                {!brief && <Table.Td>{e.status === 'in_progress' ? 'in it' : e.reason ? `${e.status}: ${e.reason}` : e.status}</Table.Td>}
                {!brief && <Table.Td>{e.step ? nameOfStep(e.step) : '–'}</Table.Td>}
                <Table.Td title={e.due ? instant(e.due) : undefined}>{e.due ? (brief ? short(e.due, Date.now()) : instant(e.due)) : '–'}</Table.Td>
                {!brief && <Table.Td>{instant(e.started_at)}</Table.Td>}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollTable>
    </Paper>
  )
}
