import { Button, Group, NativeSelect, Paper, Table, Text, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { api, whole } from '@/shared/api/client'
import { ApiError } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { useCapturedChannels } from '@/shared/captured'
import { count, instant, short } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { Page } from '@/shared/Page'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, Failed, Loading, NoPermission } from '@/shared/states'
import { MessageDrawer } from './MessageDrawer'
import { channelNames, titleOf, whyUnsent, type Message } from './words'

const route = getRouteApi('/shell/unsent')
const rows = 50 // messages of a page
const mostPages = 20 // that are read to find the message of an address

/** /unsent: what the server kept because it has no relay or provider, the newest first. */
export function UnsentMessages() {
  const { channel, to, open } = route.useSearch()
  const navigate = route.useNavigate()
  const may = useMay()
  const captured = useCapturedChannels()
  const [typed, setTyped] = useState(to ?? '')
  const [address] = useDebouncedValue(typed.trim(), 250)
  const keep = (change: { channel?: typeof channel; to?: string; open?: number }) => void navigate({ search: (s) => ({ ...s, ...change }), replace: true })
  useEffect(() => {
    if (address !== (to ?? '')) keep({ to: address || undefined })
    // What is typed goes to the address, and not the other way round.
  }, [address])
  const messages = useInfiniteQuery({
    queryKey: ['unsent', channel ?? '', to ?? ''],
    queryFn: ({ pageParam, signal }) => whole(api.GET('/console/api/v1/outbox', { params: { query: { limit: rows, ...(channel && { channel }), ...(to && { to }), ...(pageParam && { cursor: pageParam }) } }, signal })),
    initialPageParam: '',
    getNextPageParam: (last) => last.next || undefined,
    enabled: may('campaigns:read'),
  })
  const list = messages.data?.pages.flatMap((p) => p.data) ?? []
  const shown = list.find((m) => m.seq === open)
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = messages
  const pages = messages.data?.pages.length ?? 0
  // A page may be empty and have a next one; and the message of the address may be on a later one.
  const seeks = hasNextPage && !isFetchingNextPage && pages < mostPages && (list.length === 0 || (open !== undefined && !shown))
  useEffect(() => {
    if (seeks) void fetchNextPage()
  }, [seeks, fetchNextPage])
  if (!may('campaigns:read')) return <NoPermission permission="campaigns:read" />
  const none = messages.error instanceof ApiError && messages.error.status === 404
  return (
    <Page
      title="Unsent messages"
      aside={messages.dataUpdatedAt > 0 && <AsOf at={new Date(messages.dataUpdatedAt).toISOString()} />}
      actions={
        !none && (
          <Button variant="default" onClick={() => void messages.refetch()} loading={messages.isRefetching} leftSection={<Icon name="refresh" size={14} />}>
            Refresh
          </Button>
        )
      }
    >
      {none ? (
        <Empty icon="send" title="This server keeps no messages">
          It has a relay and a provider for every channel, and sends all of them.
        </Empty>
      ) : (
        <>
          <Text size="sm" c="dimmed" mb="sm" maw={720}>
            Without a mail relay or a provider the server keeps messages instead of sending them. They count as sent, so that you can try everything; nobody gets them. Old ones make room for new ones.
          </Text>
          <Group gap="sm" mb="sm" align="flex-start">
            <NativeSelect label="Channel" value={channel ?? ''} onChange={(e) => keep({ channel: (e.currentTarget.value || undefined) as typeof channel })} data={[{ value: '', label: 'Every channel' }, ...Object.entries(channelNames).map(([value, label]) => ({ value, label }))]} />
            <TextInput label="To" description="A whole address or number" inputWrapperOrder={['label', 'input', 'description']} type="search" flex="1 1 200px" maw={320} value={typed} onChange={(e) => setTyped(e.currentTarget.value)} />
          </Group>
          {messages.isError && <Failed error={messages.error} retry={() => void messages.refetch()} />}
          {(messages.isLoading || (list.length === 0 && seeks)) && <Loading what="the unsent messages" />}
          {messages.isSuccess && list.length === 0 && !hasNextPage && (
            <Empty icon="mail" title="No unsent message">
              {channel || to ? 'No message matches. Choose every channel, or clear the address.' : 'What campaigns, flows, tests and your programs send is listed here while it goes to nobody.'}
            </Empty>
          )}
          {list.length > 0 && (
            <Paper withBorder>
              <ScrollTable label="Table of unsent messages" minWidth={640}>
                <Table verticalSpacing={6} highlightOnHover>
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>To</Table.Th>
                      <Table.Th>Subject</Table.Th>
                      <Table.Th>Channel</Table.Th>
                      <Table.Th>When</Table.Th>
                      <Table.Th>Why not sent</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {list.map((m) => (
                      <Row key={m.seq} m={m} captured={captured} onOpen={() => keep({ open: m.seq })} />
                    ))}
                  </Table.Tbody>
                </Table>
              </ScrollTable>
            </Paper>
          )}
          {hasNextPage && (
            <Button mt="sm" variant="default" onClick={() => void fetchNextPage()} loading={isFetchingNextPage}>
              Show more
            </Button>
          )}
          {messages.isSuccess && list.length > 0 && (
            <Text size="xs" c="dimmed" mt="xs" role="status">
              {count(list.length)} shown{open !== undefined && !shown && !seeks ? `. Message ${open} is not among them; it may have made room for newer ones.` : ''}
            </Text>
          )}
        </>
      )}
      <MessageDrawer message={shown} captured={captured} onClose={() => keep({ open: undefined })} />
    </Page>
  )
}

function Row({ m, captured, onOpen }: { m: Message; captured: readonly string[]; onOpen: () => void }) {
  return (
    <Table.Tr style={{ cursor: 'pointer' }} onClick={onOpen}>
      <Table.Td style={{ overflowWrap: 'anywhere' }}>{m.to}</Table.Td>
      <Table.Td>
        <button type="button" className="plain" onClick={(e) => (e.stopPropagation(), onOpen())} style={{ overflowWrap: 'anywhere' }}>
          {titleOf(m)}
        </button>
      </Table.Td>
      <Table.Td>{channelNames[m.channel]}</Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <time dateTime={m.at} title={instant(m.at)}>
          {short(m.at, Date.now())}
        </time>
      </Table.Td>
      <Table.Td c="dimmed">{whyUnsent(m.channel, captured)}</Table.Td>
    </Table.Tr>
  )
}
