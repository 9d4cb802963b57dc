import { ActionIcon, Button, Menu, Tabs, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { useConfirm } from '@/shared/confirm'
import { count } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { Page } from '@/shared/Page'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { Uses } from '@/shared/Uses'
import { PeopleBrowser } from '../people/PeopleBrowser'
import { AddPeople } from './AddPeople'
import { ListForm } from './ListForm'
import { useDeleteList, useList, useUses, type List } from './useLists'

const route = getRouteApi('/shell/lists/$id')

/** /lists/$id: the contacts of a list, and where the list is used. */
export function ListPage() {
  const { id } = route.useParams()
  const may = useMay()
  const list = useList(id)
  if (!may('lists:read')) return <NoPermission permission="lists:read" />
  return (
    <QueryView query={list} what="the list">
      {(l) => <View key={l._id} list={l} readAt={list.dataUpdatedAt} />}
    </QueryView>
  )
}

function View({ list, readAt }: { list: List; readAt: number }) {
  const { tab = 'people', open, ...people } = route.useSearch()
  const navigate = route.useNavigate()
  const may = useMay()
  const writes = may('lists:write')
  const remove = useDeleteList()
  const leave = async () => {
    if (await remove(list)) await navigate({ to: '/lists' })
  }
  const asOf = new Date(readAt).toISOString()
  const show = (o: typeof open) => void navigate({ search: (s) => ({ ...s, open: o }) })
  const add = writes && (
    <Button leftSection={<Icon name="plus" size={14} />} onClick={() => show('add')}>
      Add people
    </Button>
  )
  return (
    <Page
      title={list.name}
      aside={
        <>
          <Text span fz="h3" fw={700} c="var(--mantine-color-text)" className="numbers" data-testid="count" aria-live="polite">
            {count(list.contacts)}
          </Text>{' '}
          {list.contacts === 1 ? 'person' : 'people'} <AsOf at={asOf} />
        </>
      }
      actions={
        writes && (
          <>
            {add}
            <Menu position="bottom-end">
              <Menu.Target>
                <ActionIcon variant="default" size={36} aria-label="More actions">
                  <Icon name="dots" />
                </ActionIcon>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item leftSection={<Icon name="edit" size={14} />} onClick={() => show('edit')}>
                  Rename
                </Menu.Item>
                <Menu.Divider />
                <Menu.Item leftSection={<Icon name="trash" size={14} />} onClick={() => void leave()}>
                  Delete
                </Menu.Item>
              </Menu.Dropdown>
            </Menu>
          </>
        )
      }
    >
      {list.description && (
        <Text size="sm" c="dimmed" mb="md" style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-line' }}>
          {list.description}
        </Text>
      )}
      <Tabs value={tab} onChange={(t) => void navigate({ search: { tab: t === 'people' ? undefined : (t as 'uses') } })} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="people">People</Tabs.Tab>
          <Tabs.Tab value="uses">Used in</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="people">
          {may('contacts:read') ? (
            <PeopleBrowser
              label="People on the list"
              search={people}
              onSearch={(change) => void navigate({ search: (s) => ({ ...s, ...change }), replace: true })}
              fixed={{ list: list._id }}
              count={{ n: list.contacts, at: asOf }}
              maxHeight="calc(100vh - 340px)"
              empty={
                <Empty icon="users" title="Nobody is on this list" action={add}>
                  People are added by hand, by import, by a form or through the API.
                </Empty>
              }
              renderAction={writes ? (id, name) => <TakeOff list={list} id={id} name={name} /> : undefined}
            />
          ) : (
            <NoPermission permission="contacts:read" />
          )}
        </Tabs.Panel>
        <Tabs.Panel value="uses">
          <UsedIn id={list._id} />
        </Tabs.Panel>
      </Tabs>
      <AddPeople list={list} opened={writes && open === 'add'} onClose={() => show(undefined)} />
      <ListForm
        opened={writes && open === 'edit'}
        of={list}
        onClose={() => show(undefined)}
        onSaved={(l) => {
          show(undefined)
          notifications.show({ message: `${l.name} is saved.` })
        }}
      />
    </Page>
  )
}

function UsedIn({ id }: { id: string }) {
  const uses = useUses(id)
  return (
    <QueryView query={uses} what="where the list is used">
      {(all) => <Uses uses={all} none="No segment, flow or campaign that is still to be sent uses it." />}
    </QueryView>
  )
}

function TakeOff({ list, id, name }: { list: List; id: string; name: string }) {
  const confirm = useConfirm()
  const client = useQueryClient()
  const act = async () => {
    if (!(await confirm({ title: `Take ${name} off ${list.name}?`, body: 'Segments that use the list are re-evaluated for this person.', yes: 'Take off', danger: true }))) return
    try {
      await data(api.DELETE('/console/api/v1/lists/{id}/members/{profile}', { params: { path: { id: list._id, profile: id } } }))
    } catch (e) {
      notifications.show({ color: 'red', title: 'Nothing was changed', message: messageOf(e) })
      return
    }
    notifications.show({ message: `${name} is off ${list.name}.` })
    await Promise.all(['lists', 'people'].map((k) => client.invalidateQueries({ queryKey: [k] })))
    client.removeQueries({ queryKey: ['person', id] })
  }
  return (
    <ActionIcon variant="subtle" color="gray" aria-label={`Take ${name} off the list`} onClick={() => void act()}>
      <Icon name="x" size={14} />
    </ActionIcon>
  )
}
