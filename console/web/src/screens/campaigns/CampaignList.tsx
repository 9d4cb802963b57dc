import { Group, Menu, NativeSelect, Paper, Table, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { Button } from '@mantine/core'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { count, instant, percent } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink, ButtonLink, MenuLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { RowActions } from '@/shared/RowActions'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { StatusBadge } from './StatusBadge'
import { channelOf, mostListed, severalChannels, statusColours, useCampaigns, useStats, type Campaign } from './useCampaigns'

const route = getRouteApi('/shell/campaigns')
const step = 50 // rows that are drawn, and more on a click

/** /campaigns: the newest first, with what became of each. */
export function CampaignList() {
  const { q = '', status } = route.useSearch()
  const navigate = route.useNavigate()
  const campaigns = useCampaigns()
  const may = useMay()
  const [rows, setRows] = useState(step)
  if (!may('campaigns:read')) return <NoPermission permission="campaigns:read" />
  const writes = may('campaigns:write')
  const create = writes && (
    <ButtonLink to="/campaigns/new" leftSection={<Icon name="plus" size={14} />}>
      New campaign
    </ButtonLink>
  )
  return (
    <Page title="Campaigns" actions={create}>
      <QueryView query={campaigns} what="the campaigns">
        {(all) => {
          if (all.length === 0)
            return (
              <Empty icon="send" title="There is no campaign yet" action={create}>
                A campaign is one message to many. It goes to each person once, and never to people who unsubscribed.
              </Empty>
            )
          const shown = all.filter((c) => (!status || c.status === status) && `${c.name} ${c.subject}`.toLowerCase().includes(q.toLowerCase()))
          return (
            <>
              <Group gap="sm" mb="sm">
                <TextInput flex={1} maw={360} miw={180} placeholder="Name or subject" aria-label="Find a campaign" value={q} onChange={(e) => void navigate({ search: (s) => ({ ...s, q: e.currentTarget.value || undefined }), replace: true })} leftSection={<Icon name="search" size={14} />} />
                <NativeSelect aria-label="Status" value={status ?? ''} onChange={(e) => void navigate({ search: (s) => ({ ...s, status: (e.currentTarget.value || undefined) as typeof status }), replace: true })} data={[{ value: '', label: 'Every status' }, ...Object.keys(statusColours)]} />
              </Group>
              <Paper withBorder>
                <ScrollTable label="Table of campaigns" minWidth={440}>
                  <Table verticalSpacing="xs" highlightOnHover>
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Name and subject</Table.Th>
                        <Table.Th>Status</Table.Th>
                        <Table.Th ta="right">Sent</Table.Th>
                        <Table.Th ta="right" visibleFrom="sm">
                          Opened
                        </Table.Th>
                        <Table.Th ta="right" visibleFrom="sm">
                          Clicked
                        </Table.Th>
                        <Table.Th w={48} aria-label="Actions" />
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {shown.slice(0, rows).map((c) => (
                        <Row key={c._id} c={c} writes={writes} />
                      ))}
                    </Table.Tbody>
                  </Table>
                </ScrollTable>
              </Paper>
              {shown.length > rows && (
                <Button mt="sm" variant="default" onClick={() => setRows(rows + step)}>
                  Show more of {count(shown.length)}
                </Button>
              )}
              {shown.length === 0 && (
                <Text size="sm" c="dimmed" mt="md">
                  No campaign matches.
                </Text>
              )}
              {all.length >= mostListed && (
                <Text size="sm" c="dimmed" mt="md">
                  Only the newest {count(mostListed)} campaigns are listed here.
                </Text>
              )}
            </>
          )
        }}
      </QueryView>
    </Page>
  )
}

function Row({ c, writes }: { c: Campaign; writes: boolean }) {
  const client = useQueryClient()
  const confirm = useConfirm()
  const ran = c.status !== 'draft' && c.status !== 'scheduled'
  const stats = useStats(c._id, { enabled: ran })
  const n = stats.data
  const status = n?.status ?? c.status
  const remove = async () => {
    if (!(await confirm({ title: `Delete ${c.name}?`, body: c.status === 'scheduled' ? 'It is scheduled, and will not be sent.' : 'Its message and settings are deleted.', yes: 'Delete', danger: true }))) return
    try {
      await data(api.DELETE('/console/api/v1/campaigns/{id}', { params: { path: { id: c._id } } }))
      await client.invalidateQueries({ queryKey: ['campaigns'] })
      notifications.show({ message: `${c.name} is deleted.` })
    } catch (e) {
      notifications.show({ color: 'red', title: `${c.name} was not deleted`, message: messageOf(e) })
    }
  }
  return (
    <Table.Tr>
      <Table.Td>
        {ran ? (
          <AnchorLink to="/campaigns/$id" params={{ id: c._id }} size="sm" fw={600}>
            {c.name}
          </AnchorLink>
        ) : (
          <AnchorLink to="/campaigns/$id/edit" params={{ id: c._id }} size="sm" fw={600}>
            {c.name}
          </AnchorLink>
        )}
        <Text size="xs" c="dimmed" lineClamp={1}>
          {c.channels.length > 0 ? severalChannels : channelOf(c).name}
          {c.subject && `: ${c.subject}`}
        </Text>
      </Table.Td>
      <Table.Td>
        <StatusBadge status={status} />
        {c.scheduled_at && (
          <Text size="xs" c="dimmed">
            {instant(c.scheduled_at)}
          </Text>
        )}
        {c.schedule_error && (
          <Text size="xs" c="var(--mantine-color-error)">
            {c.schedule_error}
          </Text>
        )}
      </Table.Td>
      <Table.Td ta="right" className="numbers">
        {n ? count(n.sent) : ran ? '…' : '–'}
        {n && n.remaining > 0 && (
          <Text size="xs" c="dimmed">
            of {count(n.sent + n.failed + n.remaining)}
          </Text>
        )}
      </Table.Td>
      {(['unique_opens', 'unique_clicks'] as const).map((k) => (
        <Table.Td key={k} ta="right" className="numbers" visibleFrom="sm">
          {n ? count(n[k]) : '–'}
          {n && n.sent > 0 && (
            <Text size="xs" c="dimmed">
              {percent(n[k] / n.sent)}
            </Text>
          )}
        </Table.Td>
      ))}
      <Table.Td>
        <RowActions of={c.name}>
          <MenuLink to="/campaigns/$id" params={{ id: c._id }} leftSection={<Icon name="chart" size={14} />}>
            Results
          </MenuLink>
          <MenuLink to="/campaigns/$id/edit" params={{ id: c._id }} leftSection={<Icon name="edit" size={14} />}>
            Message and audience
          </MenuLink>
          {writes && (
            <>
              <MenuLink to="/campaigns/new" search={{ copy: c._id }} leftSection={<Icon name="copy" size={14} />}>
                Duplicate
              </MenuLink>
              <Menu.Divider />
              <Menu.Item leftSection={<Icon name="trash" size={14} />} onClick={() => void remove()}>
                Delete
              </Menu.Item>
            </>
          )}
        </RowActions>
      </Table.Td>
    </Table.Tr>
  )
}
