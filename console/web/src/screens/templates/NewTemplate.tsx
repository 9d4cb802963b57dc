import { Alert, Button, Group, Paper, Stack, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { Page } from '@/shared/Page'
import { NoPermission, QueryView } from '@/shared/states'

const route = getRouteApi('/shell/templates/new')
const begin = '<p>Hello {{first_name|there}},</p>\n<p></p>\n<p><a href="{{unsubscribe_url}}">Unsubscribe</a></p>\n'

/** /templates/new: a template begins with a name, or as a copy. */
export function NewTemplate() {
  const { copy } = route.useSearch()
  const may = useMay()
  const from = useQuery({ queryKey: ['template', copy], queryFn: () => data(api.GET('/console/api/v1/templates/{id}', { params: { path: { id: copy! } } })), enabled: copy !== undefined })
  if (!may('templates:write')) return <NoPermission permission="templates:write" />
  if (!copy) return <Form name="" texts={{ subject: '', html: begin }} />
  return (
    <QueryView query={from} what="the template">
      {(t) => <Form name={`Copy of ${t.name}`} texts={{ subject: t.subject, html: t.html, text: t.text, transactional: t.transactional }} />}
    </QueryView>
  )
}

function Form({ name: first, texts }: { name: string; texts: { subject?: string; html?: string; text?: string; transactional?: boolean } }) {
  const [name, setName] = useState(first)
  const navigate = useNavigate()
  const client = useQueryClient()
  const create = useMutation({
    mutationFn: () => data(api.POST('/console/api/v1/templates', { body: { name: name.trim(), source: 'LIST', transactional: false, ...texts } })),
    onSuccess: async (t) => {
      await client.invalidateQueries({ queryKey: ['templates'] })
      await navigate({ to: '/templates/$id', params: { id: t._id } })
    },
  })
  return (
    <Page title="New template">
      <Paper withBorder p="md" maw={520}>
        <form
          onSubmit={(e) => {
            e.preventDefault()
            if (name.trim()) create.mutate()
          }}
        >
          <Stack>
            <TextInput label="Name" description="Only your team sees it." value={name} onChange={(e) => setName(e.currentTarget.value)} maxLength={200} autoComplete="off" data-1p-ignore data-autofocus />
            {create.isError && (
              <Alert role="alert" color="red" variant="light">
                {messageOf(create.error)}
              </Alert>
            )}
            <Group justify="flex-end">
              <Button type="submit" disabled={!name.trim()} loading={create.isPending}>
                Create
              </Button>
            </Group>
          </Stack>
        </form>
      </Paper>
    </Page>
  )
}
