import { Alert, Box, Button, Checkbox, Paper, Stack, Text, Textarea, TextInput, Tooltip } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { notifications } from '@mantine/notifications'
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useBlocker } from '@tanstack/react-router'
import { Fragment, useMemo, useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { ApiError, messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { Code } from '@/shared/Code'
import { Conflict, isConflict } from '@/shared/Conflict'
import { instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { ButtonLink } from '@/shared/links'
import { MessageFrame } from '@/shared/MessageFrame'
import { Page } from '@/shared/Page'
import { PersonPicker, useSomebody } from '@/shared/PersonPicker'
import { QueryView } from '@/shared/states'
import { UseLink } from '@/shared/Uses'

type Template = Schemas['Template']
const route = getRouteApi('/shell/templates/$id')

/** /templates/$id */
export function EditTemplate() {
  const { id } = route.useParams()
  const template = useQuery({ queryKey: ['template', id], queryFn: () => data(api.GET('/console/api/v1/templates/{id}', { params: { path: { id } } })), refetchOnWindowFocus: false, staleTime: Infinity })
  return (
    <QueryView query={template} what="the template">
      {(t) => <Editor key={t._id} t={t} />}
    </QueryView>
  )
}

/** A template as lines that can be compared. */
const asText = (t: Pick<Template, 'name' | 'subject' | 'html' | 'text' | 'transactional'>) => [`Name: ${t.name}`, `Subject: ${t.subject}`, `Transactional: ${t.transactional ? 'yes' : 'no'}`, t.html ?? '', ...(t.text ? ['Plain text:', t.text] : [])].join('\n')

function Editor({ t }: { t: Template }) {
  const { person } = route.useSearch()
  const navigate = route.useNavigate()
  const client = useQueryClient()
  const may = useMay()
  const writes = may('templates:write')
  const saved = { name: t.name, source: t.source, subject: t.subject, html: t.html ?? '', text: t.text ?? '', transactional: t.transactional }
  const [form, setForm] = useState(saved)
  const [plain, setPlain] = useState(saved.text !== '')
  const set = (part: Partial<typeof saved>) => setForm((f) => ({ ...f, ...part }))
  const changed = JSON.stringify(form) !== JSON.stringify(saved)
  const uses = useQuery({ queryKey: ['template', t._id, 'used-in'], queryFn: () => data(api.GET('/console/api/v1/templates/{id}/used-in', { params: { path: { id: t._id } } })) })
  const show = (out: Template) => {
    client.setQueryData(['template', t._id], out)
    setForm({ name: out.name, source: out.source, subject: out.subject, html: out.html ?? '', text: out.text ?? '', transactional: out.transactional })
    setPlain((p) => p || Boolean(out.text))
  }
  const save = useMutation({
    mutationFn: (over?: string) => data(api.PUT('/console/api/v1/templates/{id}', { params: { path: { id: t._id }, query: { if_version: over ?? t.version } }, body: { ...form, name: form.name.trim() } })),
    onSuccess: async (out) => {
      show(out)
      await client.invalidateQueries({ queryKey: ['templates'] })
      notifications.show({ message: `${out.name} is saved.` })
    },
  })
  const conflict = useQuery({
    queryKey: ['template', t._id, 'conflict', save.submittedAt],
    queryFn: async () => {
      const path = { params: { path: { id: t._id } } }
      const [theirs, versions] = await Promise.all([data(api.GET('/console/api/v1/templates/{id}', path)), data(api.GET('/console/api/v1/templates/{id}/versions', { params: { ...path.params, query: { limit: 1 } } }))])
      return { theirs, by: versions[0]?.by ?? null }
    },
    enabled: isConflict(save.error),
    gcTime: 0,
  })
  const other = isConflict(save.error) && conflict.data ? conflict.data : undefined
  useBlocker({ shouldBlockFn: ({ current, next }) => changed && current.pathname !== next.pathname && !window.confirm('Leave without saving? What you changed is lost.'), enableBeforeUnload: false })

  const somebody = useSomebody({ channel: 'email' })
  const whom = person ?? somebody
  const texts = useMemo(() => ({ subject: form.subject, html: form.html, text: form.text }), [form.subject, form.html, form.text])
  const [shown] = useDebouncedValue(texts, 200)
  const preview = useQuery({
    queryKey: ['template', t._id, 'render', whom, shown],
    queryFn: ({ signal }) => data(api.POST('/console/api/v1/templates/{id}/render', { params: { path: { id: t._id } }, body: { profile_id: whom!, ...shown }, signal })),
    enabled: whom !== undefined,
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 30_000,
  })
  const failure = conflict.error ?? (isConflict(save.error) ? preview.error : (save.error ?? preview.error))
  const field = failure instanceof ApiError ? failure.field : ''
  const said = failure ? messageOf(failure) : ''
  return (
    <Page
      title={t.name}
      aside={changed ? 'not saved yet' : `changed ${instant(t.updated_at)}`}
      wide
      actions={
        <>
          <ButtonLink to="/templates/new" search={{ copy: t._id }} variant="default" leftSection={<Icon name="copy" size={14} />}>
            Duplicate
          </ButtonLink>
          {may('campaigns:write') && (
            <ButtonLink to="/campaigns/new" search={{ template: t._id }} variant="default" leftSection={<Icon name="send" size={14} />}>
              Use in a campaign
            </ButtonLink>
          )}
          <Tooltip label="You need the permission templates:write" disabled={writes}>
            <Button onClick={() => save.mutate(undefined)} loading={save.isPending} disabled={!writes || !changed || !form.name.trim()}>
              Save
            </Button>
          </Tooltip>
        </>
      }
    >
      {other && (
        <Conflict
          other={{ version: other.theirs.version ?? '', by: other.by, at: other.theirs.updated_at, mine: asText(form), theirs: asText(other.theirs) }}
          onTake={() => {
            show(other.theirs)
            save.reset()
          }}
          onOverwrite={() => save.mutate(other.theirs.version)}
          busy={save.isPending}
        />
      )}
      <Box className="halves">
        <Paper withBorder p="md" miw={0}>
          <Stack gap="sm">
            <TextInput label="Name" value={form.name} onChange={(e) => set({ name: e.currentTarget.value })} maxLength={200} error={field === 'name' ? said : undefined} readOnly={!writes} autoComplete="off" data-1p-ignore />
            <TextInput label="Subject" value={form.subject} onChange={(e) => set({ subject: e.currentTarget.value })} maxLength={998} error={field === 'subject' ? said : undefined} readOnly={!writes} />
            <Box>
              <Text size="sm" fw={500} mb={2}>
                HTML
              </Text>
              <Code language="html" label="HTML of the message" value={form.html} onChange={(html) => set({ html })} readOnly={!writes} minHeight={260} />
              {field === 'html' && (
                <Text role="alert" size="xs" c="var(--mantine-color-error)" mt={4}>
                  {said}
                </Text>
              )}
            </Box>
            <Checkbox label="Write the plain text myself" description="Otherwise it is made from the HTML." checked={plain} onChange={(e) => (setPlain(e.currentTarget.checked), !e.currentTarget.checked && set({ text: '' }))} disabled={!writes} />
            {plain && <Textarea label="Plain text" autosize minRows={4} maxRows={14} value={form.text} onChange={(e) => set({ text: e.currentTarget.value })} error={field === 'text' ? said : undefined} readOnly={!writes} />}
            <Checkbox label="Transactional" description="A message that people need even if they unsubscribed, such as a receipt. This matters only for single e-mails sent through the API: campaigns and flows are always marketing." checked={form.transactional} onChange={(e) => set({ transactional: e.currentTarget.checked })} disabled={!writes} />
            {said && !['name', 'subject', 'html', 'text'].includes(field) && (
              <Alert role="alert" color="red" variant="light">
                {said}
              </Alert>
            )}
            {uses.data && (
              <Text size="xs" c="dimmed">
                {uses.data.length === 0
                  ? 'Nothing uses it yet.'
                  : uses.data.map((u, i) => (
                      <Fragment key={u.kind + u._id}>
                        {i === 0 ? 'Used in ' : ', '}
                        {u.kind} <UseLink use={u} />
                      </Fragment>
                    ))}
                {uses.data.length > 0 && '. What you save is sent from then on.'}
              </Text>
            )}
          </Stack>
        </Paper>
        <Paper withBorder p="md" miw={0} component="section" aria-label="Preview">
          <Stack gap="sm">
            <PersonPicker label="Shown for" value={whom} onChange={(p) => void navigate({ search: { person: p }, replace: true })} />
            {preview.data ? (
              <>
                <Text fw={600} data-testid="preview-subject">
                  {preview.data.subject || 'without a subject'}
                </Text>
                <MessageFrame html={preview.data.html} title="The message" />
              </>
            ) : (
              <Text size="sm" c="dimmed">
                {whom ? 'The message is being rendered.' : 'There is nobody yet to show it for. Send an event or add a contact.'}
              </Text>
            )}
          </Stack>
        </Paper>
      </Box>
    </Page>
  )
}
