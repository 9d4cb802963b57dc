import { ActionIcon, Alert, Anchor, Button, Checkbox, Code, Group, MultiSelect, NativeSelect, Paper, SimpleGrid, Stack, Switch, Table, Text, Textarea, TextInput, Title } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { AsOf } from '@/shared/AsOf'
import { isConflict } from '@/shared/Conflict'
import { useConfirm } from '@/shared/confirm'
import { CopyButton } from '@/shared/CopyButton'
import { count } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { MessageFrame } from '@/shared/MessageFrame'
import { Page } from '@/shared/Page'
import { ScrollTable } from '@/shared/ScrollTable'
import { NoPermission, QueryView } from '@/shared/states'
import { allPages } from '../settings/allPages'
import { useAct } from '../settings/useAct'
import { draftOf, linesOf, pageOf, type Draft, type Field, type Form } from './preview'

const route = getRouteApi('/shell/forms/$id')

/** /forms/$id: a form, its page as it will be, its figures, and the HTML for other sites. */
export function FormPage() {
  const { id } = route.useParams()
  const may = useMay()
  const navigate = useNavigate()
  const confirm = useConfirm()
  const path = { params: { path: { id } } }
  const form = useQuery({ queryKey: ['form', id], queryFn: () => data(api.GET('/console/api/v1/forms/{id}', path)), enabled: may('lists:read') })
  const [deleteIt] = useAct('forms')
  if (!may('lists:read')) return <NoPermission permission="lists:read" />
  const f = form.data
  const remove = async () => {
    if (!(await confirm({ title: `Delete ${f?.name}?`, body: 'Its page is gone at once, with its figures. People who signed up, and what they agreed to, stay.', yes: 'Delete', danger: true }))) return
    if (await deleteIt('The form was not deleted', () => data(api.DELETE('/console/api/v1/forms/{id}', path)).then(() => true), `${f?.name} is deleted.`)) void navigate({ to: '/forms' })
  }
  return (
    <Page
      title={f?.name ?? 'Form'}
      aside={form.dataUpdatedAt > 0 && <AsOf at={new Date(form.dataUpdatedAt).toISOString()} />}
      actions={
        f &&
        may('lists:write') && (
          <Button variant="default" onClick={() => void remove()} leftSection={<Icon name="trash" size={14} />}>
            Delete
          </Button>
        )
      }
    >
      <AnchorLink to="/forms" size="sm">
        All forms
      </AnchorLink>
      <QueryView query={form} what="the form">
        {(f) => (
          <Stack gap="md" mt="sm">
            <Editor key={f._id} saved={f} writes={may('lists:write')} />
            <Embedding f={f} />
            <Figures f={f} />
          </Stack>
        )}
      </QueryView>
    </Page>
  )
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Title order={2} size="h5" mb="xs">
        {title}
      </Title>
      {children}
    </Paper>
  )
}

const kinds = [
  { value: 'email', label: 'E-mail' },
  { value: 'phone', label: 'Phone' },
  { value: 'first_name', label: 'First name' },
  { value: 'last_name', label: 'Last name' },
  { value: 'attributes.', label: 'Attribute' },
]
const types = [
  { value: 'text', label: 'a text' },
  { value: 'number', label: 'a number' },
  { value: 'boolean', label: 'yes or no' },
  { value: 'date', label: 'a date' },
  { value: 'choice', label: 'one of several' },
]
const channels = [
  { value: 'email', label: 'E-mail' },
  { value: 'sms', label: 'SMS' },
  { value: 'whatsapp', label: 'WhatsApp' },
]

function Editor({ saved, writes }: { saved: Form; writes: boolean }) {
  const client = useQueryClient()
  const may = useMay()
  const [base, setBase] = useState(saved)
  const [draft, setDraft] = useState<Draft>(() => draftOf(saved))
  const [busy, setBusy] = useState(false)
  const [fault, setFault] = useState<unknown>(null)
  const [done, setDone] = useState(false)
  const set = (more: Partial<Draft>) => {
    setDraft((d) => ({ ...d, ...more }))
    setDone(false)
  }
  const lists = useQuery({ queryKey: ['lists', 'whole'], queryFn: () => allPages((cursor) => api.GET('/console/api/v1/lists', { params: { query: { limit: 100, cursor } } })), enabled: may('lists:read') })
  const changed = JSON.stringify(draft) !== JSON.stringify(draftOf(base))
  const save = async (over: boolean) => {
    setBusy(true)
    setFault(null)
    try {
      const body = { ...draft, consent: draft.consent ?? { text: '', channels: [], required: false } }
      const now = await data(api.PATCH('/console/api/v1/forms/{id}', { params: { path: { id: base._id }, query: over ? {} : { if_version: base.version } }, body }))
      setBase(now)
      setDraft(draftOf(now))
      setDone(true)
      client.setQueryData(['form', base._id], now)
      void client.invalidateQueries({ queryKey: ['forms'] })
    } catch (e) {
      setFault(e)
    } finally {
      setBusy(false)
    }
  }
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void save(false)
        }}
      >
        <fieldset disabled={!writes} style={{ border: 0, margin: 0, padding: 0, minInlineSize: 0 }}>
          <Stack gap="md">
            <Section title="Page">
              <Stack gap="sm">
                <TextInput label="Name" description="For your own people." required value={draft.name} onChange={(e) => set({ name: e.currentTarget.value })} />
                <TextInput label="Title" required value={draft.title} onChange={(e) => set({ title: e.currentTarget.value })} />
                <Textarea label="Text" autosize minRows={2} maxRows={8} value={draft.text} onChange={(e) => set({ text: e.currentTarget.value })} />
                <TextInput label="Button" required value={draft.button} onChange={(e) => set({ button: e.currentTarget.value })} />
              </Stack>
            </Section>
            <Fields fields={draft.fields} onChange={(fields) => set({ fields })} />
            <Section title="Consent and lists">
              <Stack gap="sm">
                <Switch label="Ask for a consent" checked={draft.consent !== null} onChange={(e) => set({ consent: e.currentTarget.checked ? { text: 'Yes, send me news. I can unsubscribe at any time.', channels: ['email'], required: true } : null })} />
                {draft.consent && (
                  <>
                    <Textarea label="What people agree to" description="The log of consents keeps it with each consent." required autosize minRows={2} maxLength={1000} value={draft.consent.text} onChange={(e) => set({ consent: { ...draft.consent!, text: e.currentTarget.value } })} />
                    <Checkbox.Group label="Channels" value={draft.consent.channels} onChange={(v) => set({ consent: { ...draft.consent!, channels: v as NonNullable<Draft['consent']>['channels'] } })}>
                      <Group mt={4}>
                        {channels.map((c) => (
                          <Checkbox key={c.value} value={c.value} label={c.label} />
                        ))}
                      </Group>
                    </Checkbox.Group>
                    <Checkbox label="The form cannot be sent without it" checked={draft.consent.required ?? false} onChange={(e) => set({ consent: { ...draft.consent!, required: e.currentTarget.checked } })} />
                  </>
                )}
                <MultiSelect label="Lists that people join" searchable data={(lists.data ?? []).map((l) => ({ value: l._id, label: l.name }))} value={draft.list_ids} onChange={(list_ids) => set({ list_ids })} />
                <Switch label="Everybody confirms by e-mail" description="People on file always confirm before anything changes." checked={draft.double_opt_in} onChange={(e) => set({ double_opt_in: e.currentTarget.checked })} />
              </Stack>
            </Section>
            <Section title="After it, and where">
              <Stack gap="sm">
                <Textarea label="Message" autosize minRows={2} value={draft.message} onChange={(e) => set({ message: e.currentTarget.value })} />
                <TextInput label="Or lead to this address" placeholder="https://shop.example/thanks" value={draft.redirect_url} onChange={(e) => set({ redirect_url: e.currentTarget.value.trim() })} />
                <Origins list={draft.allowed_origins} onChange={(allowed_origins) => set({ allowed_origins })} />
                <Switch label="Published" description="The page is shown, and submissions are taken." checked={draft.published} onChange={(e) => set({ published: e.currentTarget.checked })} />
              </Stack>
            </Section>
            {fault !== null && (
              <Alert role="alert" color="red" variant="light" icon={<Icon name="alert" />} title="The form was not saved">
                {messageOf(fault)}
                {isConflict(fault) && (
                  <Group mt="xs">
                    <Button size="xs" variant="default" onClick={() => void save(true)}>
                      Save mine over it
                    </Button>
                  </Group>
                )}
              </Alert>
            )}
            {writes && (
              <Group>
                <Button type="submit" loading={busy} disabled={!changed}>
                  Save
                </Button>
                {done && (
                  <Text size="sm" role="status">
                    The form is saved.
                  </Text>
                )}
              </Group>
            )}
          </Stack>
        </fieldset>
      </form>
      <Section title="Preview">
        <MessageFrame html={pageOf(draft)} title="Preview of the page" height={560} />
      </Section>
    </SimpleGrid>
  )
}

/** Sites that may embed the form: one a line. */
function Origins({ list, onChange }: { list: string[]; onChange: (list: string[]) => void }) {
  const [text, setText] = useState(list.join('\n'))
  return (
    <Textarea
      label="Sites that may embed it"
      description="One a line, such as https://shop.example, or https://*.shop.example for all below it. * allows every site; none, only the hosted page."
      autosize
      minRows={2}
      value={text}
      onChange={(e) => {
        setText(e.currentTarget.value)
        onChange(linesOf(e.currentTarget.value))
      }}
    />
  )
}

function Fields({ fields, onChange }: { fields: Field[]; onChange: (fields: Field[]) => void }) {
  const put = (i: number, more: Partial<Field>) => onChange(fields.map((f, k) => (k === i ? { ...f, ...more } : f)))
  const move = (i: number) => onChange(fields.map((f, k) => (k === i - 1 ? fields[i]! : k === i ? fields[i - 1]! : f)))
  return (
    <Section title="Fields">
      <Stack gap="sm">
        {fields.map((f, i) => {
          const attribute = f.name.startsWith('attributes.')
          const what = f.label || `field ${i + 1}`
          return (
            <Paper key={i} withBorder p="xs" role="group" aria-label={`Field ${i + 1}`}>
              <Group gap="xs" align="end" wrap="wrap">
                <NativeSelect label="Asks for" data={kinds} value={attribute ? 'attributes.' : f.name} onChange={(e) => put(i, { name: e.currentTarget.value, type: 'text', options: undefined })} />
                {attribute && <TextInput label="Attribute" w={130} required value={f.name.slice('attributes.'.length)} onChange={(e) => put(i, { name: `attributes.${e.currentTarget.value}` })} />}
                {attribute && <NativeSelect label="Takes" data={types} value={f.type ?? 'text'} onChange={(e) => put(i, { type: e.currentTarget.value as Field['type'], options: e.currentTarget.value === 'choice' ? ['Yes', 'No'] : undefined })} />}
                <TextInput label="Label" w={150} required value={f.label} onChange={(e) => put(i, { label: e.currentTarget.value })} />
                <Checkbox label="Required" mb={8} checked={f.required ?? false} onChange={(e) => put(i, { required: e.currentTarget.checked })} />
                <ActionIcon variant="default" mb={4} aria-label={`Move ${what} up`} disabled={i === 0} onClick={() => move(i)}>
                  ↑
                </ActionIcon>
                <ActionIcon variant="default" mb={4} aria-label={`Remove ${what}`} onClick={() => onChange(fields.filter((_, k) => k !== i))}>
                  <Icon name="trash" size={14} />
                </ActionIcon>
              </Group>
              {f.type === 'choice' && <Textarea mt="xs" label="Options, one a line" autosize minRows={2} defaultValue={(f.options ?? []).join('\n')} onChange={(e) => put(i, { options: linesOf(e.currentTarget.value) })} />}
            </Paper>
          )
        })}
        <Group>
          <Button variant="default" size="xs" onClick={() => onChange([...fields, { name: 'attributes.', label: '', type: 'text', required: false }])} leftSection={<Icon name="plus" size={14} />}>
            Add a field
          </Button>
        </Group>
      </Stack>
    </Section>
  )
}

function Embedding({ f }: { f: Form }) {
  return (
    <Section title="Use it">
      <Text size="sm" mb="xs">
        The hosted page:{' '}
        <Anchor href={f.url} target="_blank" rel="noreferrer" style={{ overflowWrap: 'anywhere' }}>
          {f.url}
        </Anchor>
        {!f.published && ' It shows once the form is published.'}
      </Text>
      <Text size="sm" mb="xs">
        For your own site, plain HTML without scripts. {f.allowed_origins.length === 0 && 'No site may embed the form yet: allow one above.'} Copy it again when the fields or the consent change.
      </Text>
      <Code block tabIndex={0} aria-label="HTML to embed the form">
        {f.html}
      </Code>
      <Group mt="xs">
        <CopyButton value={f.html} label="Copy the HTML" />
        <CopyButton value={f.url} label="Copy the address" />
      </Group>
    </Section>
  )
}

function Figures({ f }: { f: Form }) {
  const stats = useQuery({ queryKey: ['form', f._id, 'stats'], queryFn: () => data(api.GET('/console/api/v1/forms/{id}/stats', { params: { path: { id: f._id } } })) })
  return (
    <Section title="Figures">
      <Text size="sm" c="dimmed" mb="xs">
        A conversion is a submission that took effect: at once, or once the person has confirmed it. Not to be confirmed are those for which no message could be sent.
      </Text>
      <QueryView query={stats} what="the figures">
        {(s) => (
          <ScrollTable label="Figures by day" minWidth={480}>
            <Table verticalSpacing={4}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Day (UTC)</Table.Th>
                  <Table.Th ta="right">Views</Table.Th>
                  <Table.Th ta="right">Submissions</Table.Th>
                  <Table.Th ta="right">Conversions</Table.Th>
                  <Table.Th ta="right">Not to be confirmed</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {[{ date: 'All', ...s.total }, ...s.days.toReversed().slice(0, 60)].map((d) => (
                  <Table.Tr key={d.date} fw={d.date === 'All' ? 600 : undefined}>
                    <Table.Td>{d.date}</Table.Td>
                    <Table.Td ta="right">{count(d.views)}</Table.Td>
                    <Table.Td ta="right">{count(d.submissions)}</Table.Td>
                    <Table.Td ta="right">{count(d.conversions)}</Table.Td>
                    <Table.Td ta="right">{count(d.unconfirmable)}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </ScrollTable>
        )}
      </QueryView>
    </Section>
  )
}
