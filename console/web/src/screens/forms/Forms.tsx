import { Badge, Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { count, date } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { ListTable, oneLine, type Column } from '@/shared/ListTable'
import { Page } from '@/shared/Page'
import { Empty, NoPermission, QueryView } from '@/shared/states'
import { allPages } from '../settings/allPages'
import { useAct } from '../settings/useAct'

const columns: Column<Schemas['Form']>[] = [
  {
    title: 'Name',
    td: () => ({ maw: 320 }),
    cell: (f) => (
      <AnchorLink to="/forms/$id" params={{ id: f._id }} size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
        {f.name}
      </AnchorLink>
    ),
  },
  {
    title: 'Status',
    cell: (f) => (
      <Badge color={f.published ? 'teal.9' : 'gray.7'} variant="filled" tt="none" miw="max-content">
        {f.published ? 'published' : 'draft'}
      </Badge>
    ),
  },
  { title: 'Views', right: true, cell: (f) => count(f.figures.views) },
  { title: 'Submissions', right: true, cell: (f) => count(f.figures.submissions) },
  { title: 'Conversions', right: true, cell: (f) => count(f.figures.conversions) },
  { title: 'Changed', td: () => oneLine, cell: (f) => date(f.updated_at) },
]

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
            <ListTable label="Table of forms" minWidth={560} columns={columns} rows={list} />
          )
        }
      </QueryView>
    </Page>
  )
}
