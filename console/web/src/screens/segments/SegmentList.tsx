import { Badge, Group, Menu, Paper, Progress, Table, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api, data, type Schemas } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { useConfirm } from '@/shared/confirm'
import { count, date } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { parseJson, writeJson } from '@/shared/json'
import { AnchorLink, ButtonLink, MenuLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { RowActions } from '@/shared/RowActions'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, QueryView } from '@/shared/states'
import { keptBy } from '@/shared/usedIn'
import { fromJson } from './definition'
import { sentence, type Names } from './sentence'
import { useNames, useSegments } from './useSuggestions'

type Segment = Schemas['Segment']
const route = getRouteApi('/shell/segments')

function inWords(s: Segment, names: Names): string {
  try {
    return sentence(fromJson(parseJson(writeJson(s.definition))), names)
  } catch {
    return ''
  }
}

/** /segments: every segment with its exact count and what it means. */
export function SegmentList() {
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const segments = useSegments()
  const names = useNames()
  const may = useMay()
  const writes = may('segments:write')
  const create = writes && (
    <ButtonLink to="/segments/new" leftSection={<Icon name="plus" size={14} />}>
      New segment
    </ButtonLink>
  )
  return (
    <Page title="Segments" aside={segments.data?.[0] && <AsOf at={segments.data[0].as_of} />} actions={create}>
      <QueryView query={segments} what="the segments">
        {(all) => {
          if (all.length === 0)
            return (
              <Empty icon="segment" title="There is no segment yet" action={create}>
                A segment is a group of people who did something or have certain attributes. Muster keeps its members up to date with every event.
              </Empty>
            )
          const shown = all.map((s) => ({ s, words: inWords(s, names) })).filter(({ s, words }) => `${s.name} ${words}`.toLowerCase().includes(q.toLowerCase()))
          return (
            <>
              <TextInput mb="sm" maw={360} placeholder="Name or condition" aria-label="Find a segment" value={q} onChange={(e) => void navigate({ search: { q: e.currentTarget.value || undefined }, replace: true })} leftSection={<Icon name="search" size={14} />} />
              <Paper withBorder>
                <ScrollTable label="Table of segments" minWidth={300}>
                  <Table verticalSpacing="xs" highlightOnHover>
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Name</Table.Th>
                        <Table.Th ta="right">Members</Table.Th>
                        <Table.Th visibleFrom="sm">Changed</Table.Th>
                        <Table.Th w={48} aria-label="Actions" />
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {shown.map(({ s, words }) => (
                        <Row key={s._id} s={s} words={words} writes={writes} />
                      ))}
                    </Table.Tbody>
                  </Table>
                </ScrollTable>
              </Paper>
              {shown.length === 0 && (
                <Text size="sm" c="dimmed" mt="md">
                  No segment has “{q}” in its name or its conditions.
                </Text>
              )}
            </>
          )
        }}
      </QueryView>
    </Page>
  )
}

function Row({ s, words, writes }: { s: Segment; words: string; writes: boolean }) {
  const client = useQueryClient()
  const confirm = useConfirm()
  const remove = async () => {
    try {
      if (keptBy(s.name, await data(api.GET('/console/api/v1/segments/{id}/used-in', { params: { path: { id: s._id } } })))) return
      if (!(await confirm({ title: `Delete ${s.name}?`, body: 'Its definition and its history are deleted. The people stay.', yes: 'Delete', danger: true }))) return
      await data(api.DELETE('/console/api/v1/segments/{id}', { params: { path: { id: s._id } } }))
      await client.invalidateQueries({ queryKey: ['segments'] })
      notifications.show({ message: `${s.name} is deleted.` })
    } catch (e) {
      notifications.show({ color: 'red', title: `${s.name} was not deleted`, message: messageOf(e) })
    }
  }
  return (
    <Table.Tr>
      <Table.Td>
        <AnchorLink to="/segments/$id" params={{ id: s._id }} size="sm" fw={600}>
          {s.name}
        </AnchorLink>
        <Text size="xs" c="dimmed" lineClamp={2}>
          {words}
        </Text>
      </Table.Td>
      <Table.Td ta="right" className="numbers" style={{ whiteSpace: 'nowrap' }}>
        {s.count == null ? '–' : count(s.count)}
        {s.status === 'building' && (
          <Group gap={6} justify="flex-end" wrap="nowrap">
            <Badge size="xs" variant="light" color="gray">
              building
            </Badge>
            <Progress w={48} size={4} value={s.progress * 100} aria-label="Built" />
          </Group>
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm" style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">{date(s.updated_at)}</Text>
      </Table.Td>
      <Table.Td>
        <RowActions of={s.name}>
          <MenuLink to="/segments/$id/edit" params={{ id: s._id }} leftSection={<Icon name="edit" size={14} />}>
            Edit
          </MenuLink>
          {writes && (
            <>
              <MenuLink to="/segments/new" search={{ copy: s._id }} leftSection={<Icon name="copy" size={14} />}>
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
