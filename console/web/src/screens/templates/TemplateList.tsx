import { Badge, Group, Menu, Paper, Table, Text, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api, data, type Schemas } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { date } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink, ButtonLink, MenuLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { RowActions } from '@/shared/RowActions'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { keptBy } from '@/shared/usedIn'
import { useTemplates } from './useTemplates'

const route = getRouteApi('/shell/templates')

/** /templates: texts that are sent more than once. */
export function TemplateList() {
  const { q = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const templates = useTemplates()
  const may = useMay()
  const writes = may('templates:write')
  if (!may('templates:read')) return <NoPermission permission="templates:read" />
  const create = writes && (
    <ButtonLink to="/templates/new" leftSection={<Icon name="plus" size={14} />}>
      New template
    </ButtonLink>
  )
  return (
    <Page title="Templates" actions={create}>
      <QueryView query={templates} what="the templates">
        {(all) => {
          if (all.length === 0)
            return (
              <Empty icon="template" title="There is no template yet" action={create}>
                A template is a message that campaigns, flows and your programs send more than once, with merge tags such as {'{{first_name}}'}.
              </Empty>
            )
          const shown = all.filter((t) => `${t.name} ${t.subject}`.toLowerCase().includes(q.toLowerCase()))
          return (
            <>
              <TextInput mb="sm" maw={360} placeholder="Name or subject" aria-label="Find a template" value={q} onChange={(e) => void navigate({ search: { q: e.currentTarget.value || undefined }, replace: true })} leftSection={<Icon name="search" size={14} />} />
              <Paper withBorder>
                <ScrollTable label="Table of templates" minWidth={360}>
                  <Table verticalSpacing="xs" highlightOnHover>
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>Name and subject</Table.Th>
                        <Table.Th visibleFrom="sm">Changed</Table.Th>
                        <Table.Th w={48} aria-label="Actions" />
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {shown.map((t) => (
                        <Row key={t._id} t={t} writes={writes} />
                      ))}
                    </Table.Tbody>
                  </Table>
                </ScrollTable>
              </Paper>
              {shown.length === 0 && (
                <Text size="sm" c="dimmed" mt="md">
                  No template has “{q}” in its name or its subject.
                </Text>
              )}
            </>
          )
        }}
      </QueryView>
    </Page>
  )
}

function Row({ t, writes }: { t: Schemas['Template']; writes: boolean }) {
  const client = useQueryClient()
  const confirm = useConfirm()
  const remove = async () => {
    try {
      if (keptBy(t.name, await data(api.GET('/console/api/v1/templates/{id}/used-in', { params: { path: { id: t._id } } })))) return
      if (!(await confirm({ title: `Delete ${t.name}?`, body: 'Its texts are deleted. Messages already sent with it stay on record.', yes: 'Delete', danger: true }))) return
      await data(api.DELETE('/console/api/v1/templates/{id}', { params: { path: { id: t._id } } }))
      await client.invalidateQueries({ queryKey: ['templates'] })
      notifications.show({ message: `${t.name} is deleted.` })
    } catch (e) {
      notifications.show({ color: 'red', title: `${t.name} was not deleted`, message: messageOf(e) })
    }
  }
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap="xs" wrap="wrap">
          <AnchorLink to="/templates/$id" params={{ id: t._id }} size="sm" fw={600}>
            {t.name}
          </AnchorLink>
          {t.transactional && (
            <Badge size="xs" variant="light" color="gray" c="dimmed">
              transactional
            </Badge>
          )}
          {t.source === 'DRAFT' && (
            <Badge size="xs" variant="light" color="gray" c="dimmed">
              draft
            </Badge>
          )}
        </Group>
        <Text size="xs" c="dimmed" lineClamp={1}>
          {t.subject || 'without a subject'}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm" style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">{date(t.updated_at)}</Text>
      </Table.Td>
      <Table.Td>
        {writes && (
          <RowActions of={t.name}>
            <MenuLink to="/templates/new" search={{ copy: t._id }} leftSection={<Icon name="copy" size={14} />}>
              Duplicate
            </MenuLink>
            <Menu.Divider />
            <Menu.Item leftSection={<Icon name="trash" size={14} />} onClick={() => void remove()}>
              Delete
            </Menu.Item>
          </RowActions>
        )}
      </Table.Td>
    </Table.Tr>
  )
}
