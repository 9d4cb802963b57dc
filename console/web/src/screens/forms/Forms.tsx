import { Badge, Button, Paper, Table } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { count, date } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { ScrollTable } from '@/shared/ScrollTable'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { allPages } from '../settings/allPages'
import { useAct } from '../settings/useAct'

/** /forms: signup forms with their figures. */
export function Forms() {
  const may = useMay()
  const navigate = useNavigate()
  const forms = useQuery({ queryKey: ['forms'], queryFn: () => allPages((cursor) => api.GET('/console/api/v1/forms', { params: { query: { limit: 100, cursor } } })), enabled: may('lists:read') })
  const [act, busy] = useAct('forms')
  if (!may('lists:read')) return <NoPermission permission="lists:read" />
  const make = async () => {
    const made = await act('The form was not made', () =>
      data(api.POST('/console/api/v1/forms', { body: { name: 'New form', fields: [{ name: 'email', label: 'E-mail', type: 'text', required: true }], consent: { text: 'Yes, send me news by e-mail. I can unsubscribe at any time.', channels: ['email'], required: true } } })),
    )
    if (made) void navigate({ to: '/forms/$id', params: { id: made._id } })
  }
  const create = may('lists:write') && (
    <Button loading={busy} onClick={() => void make()} leftSection={<Icon name="plus" size={14} />}>
      New form
    </Button>
  )
  return (
    <Page title="Forms" aside={forms.dataUpdatedAt > 0 && <AsOf at={new Date(forms.dataUpdatedAt).toISOString()} />} actions={create}>
      <QueryView query={forms} what="the forms">
        {(list) =>
          list.length === 0 ? (
            <Empty icon="edit" title="There is no form yet" action={create}>
              People sign up by a form: on a page that the server hosts, or on your own site. They join lists, and what they agreed to is on record.
            </Empty>
          ) : (
            <Paper withBorder>
              <ScrollTable label="Table of forms" minWidth={560}>
                <Table verticalSpacing="xs">
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Name</Table.Th>
                      <Table.Th>Status</Table.Th>
                      <Table.Th ta="right">Views</Table.Th>
                      <Table.Th ta="right">Submissions</Table.Th>
                      <Table.Th ta="right">Conversions</Table.Th>
                      <Table.Th>Changed</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {list.map((f) => (
                      <Table.Tr key={f._id}>
                        <Table.Td maw={320}>
                          <AnchorLink to="/forms/$id" params={{ id: f._id }} size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
                            {f.name}
                          </AnchorLink>
                        </Table.Td>
                        <Table.Td>
                          <Badge color={f.published ? 'teal.9' : 'gray.7'} variant="filled" tt="none" miw="max-content">
                            {f.published ? 'published' : 'draft'}
                          </Badge>
                        </Table.Td>
                        <Table.Td ta="right">{count(f.figures.views)}</Table.Td>
                        <Table.Td ta="right">{count(f.figures.submissions)}</Table.Td>
                        <Table.Td ta="right">{count(f.figures.conversions)}</Table.Td>
                        <Table.Td style={{ whiteSpace: 'nowrap' }}>{date(f.updated_at)}</Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </ScrollTable>
            </Paper>
          )
        }
      </QueryView>
    </Page>
  )
}
