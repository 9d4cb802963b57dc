import { Button, Menu, Paper, Table, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { getRouteApi } from '@tanstack/react-router'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { count, date } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink, MenuLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { RowActions } from '@/shared/RowActions'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { useLists } from '../segments/useSuggestions'
import { ListForm } from './ListForm'
import { useDeleteList, type List } from './useLists'

const route = getRouteApi('/shell/lists')

/** /lists: every list with how many people are on it. */
export function Lists() {
  const { q = '', edit } = route.useSearch()
  const navigate = route.useNavigate()
  const lists = useLists()
  const may = useMay()
  if (!may('lists:read')) return <NoPermission permission="lists:read" />
  const writes = may('lists:write')
  const open = (id?: string) => void navigate({ search: (s) => ({ ...s, edit: id }) })
  const create = writes && (
    <Button leftSection={<Icon name="plus" size={14} />} onClick={() => open('new')}>
      New list
    </Button>
  )
  return (
    <Page title="Lists" aside={lists.data && lists.data.length > 0 && <AsOf at={new Date(lists.dataUpdatedAt).toISOString()} />} actions={create}>
      <QueryView query={lists} what="the lists">
        {(all) => {
          if (all.length === 0)
            return (
              <Empty icon="list" title="There is no list yet" action={create}>
                A list has the people you add to it: by hand, by import or through the API. For people who match conditions, use a segment: it keeps itself up to date.
              </Empty>
            )
          const shown = all.filter((l) => `${l.name} ${l.description}`.toLowerCase().includes(q.toLowerCase()))
          return (
            <>
              <TextInput mb="sm" maw={360} placeholder="Name or description" aria-label="Find a list" value={q} onChange={(e) => void navigate({ search: (s) => ({ ...s, q: e.currentTarget.value || undefined }), replace: true })} leftSection={<Icon name="search" size={14} />} />
              <Paper withBorder>
                <ScrollTable label="Table of lists" minWidth={340}>
                  <Table verticalSpacing="xs" highlightOnHover>
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Name</Table.Th>
                        <Table.Th ta="right">People</Table.Th>
                        <Table.Th visibleFrom="sm">Changed</Table.Th>
                        <Table.Th w={48} aria-label="Actions" />
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {shown.map((l) => (
                        <Row key={l._id} l={l} writes={writes} onEdit={() => open(l._id)} />
                      ))}
                    </Table.Tbody>
                  </Table>
                </ScrollTable>
              </Paper>
              {shown.length === 0 && (
                <Text size="sm" c="dimmed" mt="md">
                  No list has “{q}” in its name or its description.
                </Text>
              )}
            </>
          )
        }}
      </QueryView>
      <ListForm
        opened={writes && edit !== undefined && (edit === 'new' || lists.data?.some((l) => l._id === edit) === true)}
        of={lists.data?.find((l) => l._id === edit)}
        onClose={() => open()}
        onSaved={(l) => {
          if (edit === 'new') void navigate({ to: '/lists/$id', params: { id: l._id }, search: {} })
          else open()
          notifications.show({ message: `${l.name} is saved.` })
        }}
      />
    </Page>
  )
}

function Row({ l, writes, onEdit }: { l: List; writes: boolean; onEdit: () => void }) {
  const remove = useDeleteList()
  return (
    <Table.Tr>
      <Table.Td>
        <AnchorLink to="/lists/$id" params={{ id: l._id }} size="sm" fw={600}>
          {l.name}
        </AnchorLink>
        <Text size="xs" c="dimmed" lineClamp={2}>
          {l.description}
        </Text>
      </Table.Td>
      <Table.Td ta="right" className="numbers">
        {count(l.contacts)}
      </Table.Td>
      <Table.Td visibleFrom="sm" style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">{date(l.updated_at)}</Text>
      </Table.Td>
      <Table.Td>
        <RowActions of={l.name}>
          <MenuLink to="/lists/$id" params={{ id: l._id }} leftSection={<Icon name="users" size={14} />}>
            People
          </MenuLink>
          <MenuLink to="/lists/$id" params={{ id: l._id }} search={{ tab: 'uses' }} leftSection={<Icon name="search" size={14} />}>
            Where it is used
          </MenuLink>
          {writes && (
            <>
              <Menu.Item leftSection={<Icon name="edit" size={14} />} onClick={onEdit}>
                Rename
              </Menu.Item>
              <Menu.Divider />
              <Menu.Item leftSection={<Icon name="trash" size={14} />} onClick={() => void remove(l)}>
                Delete
              </Menu.Item>
            </>
          )}
        </RowActions>
      </Table.Td>
    </Table.Tr>
  )
}
