import { Badge, Button, Checkbox, Group, Modal, NativeSelect, Paper, PasswordInput, SimpleGrid, Stack, Text, Textarea, TextInput, Title } from '@mantine/core'
import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { date } from '@/shared/format'
import { parseJson } from '@/shared/json'
import { QueryView } from '@/shared/states'
import { bodyOf, inbound, messages, push, type Kind } from './providers'
import { SecretOnce } from './SecretOnce'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

type Credential = Schemas['Credential']
type Group3 = 'push-credentials' | 'message-providers' | 'inbound-providers'

/** /settings/providers: services that messages go through, and those that report on them. */
export function Providers() {
  const enabled = useMay()('settings:write')
  const pushes = useQuery({ queryKey: ['push-credentials'], queryFn: () => data(api.GET('/console/api/v1/push-credentials')), enabled })
  const texts = useQuery({ queryKey: ['message-providers'], queryFn: () => data(api.GET('/console/api/v1/message-providers')), enabled })
  const reports = useQuery({ queryKey: ['inbound-providers'], queryFn: () => data(api.GET('/console/api/v1/inbound-providers')), enabled })
  return (
    <SettingsPage section="/settings/providers" title="Providers">
      <Stack gap="xl">
        <Section group="push-credentials" title="Push messages" about="Keys to the services that bring push messages to devices." kinds={push} query={pushes} />
        <Section group="message-providers" title="Texts" about="Providers that send SMS and chat messages." kinds={messages} query={texts} />
        <Section group="inbound-providers" title="Reports" about="Providers that report bounces, complaints and opens to Muster. They authenticate with what is set here." kinds={inbound} query={reports} />
      </Stack>
    </SettingsPage>
  )
}

function Section({ group, title, about, kinds, query }: { group: Group3; title: string; about: string; kinds: Kind[]; query: UseQueryResult<Credential[]> }) {
  return (
    <section aria-label={title}>
      <Title order={3} size="h5">
        {title}
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        {about}
      </Text>
      <QueryView query={query} what="the providers">
        {(set) => (
          <SimpleGrid cols={{ base: 1, md: 2, lg: 3 }} spacing="sm">
            {kinds.map((k) => (
              <Card key={k.id} group={group} kind={k} set={set.find((c) => c.kind === k.id)} />
            ))}
          </SimpleGrid>
        )}
      </QueryView>
    </section>
  )
}

function Card({ group, kind, set }: { group: Group3; kind: Kind; set?: Credential }) {
  const confirm = useConfirm()
  const [act, busy] = useAct(group)
  const [editing, setEditing] = useState(false)
  const [once, setOnce] = useState<{ label: string; value: string }[] | null>(null)
  const remove = async () => {
    if (!(await confirm({ title: `Delete ${kind.label}?`, body: group === 'inbound-providers' ? 'Its reports are refused from then on.' : 'Messages through it fail from then on. The keys cannot be shown again.', yes: 'Delete', danger: true }))) return
    const path = { params: { path: { id: kind.id as never } } }
    await act(`${kind.label} was not deleted`, () =>
      group === 'push-credentials' ? data(api.DELETE('/console/api/v1/push-credentials/{id}', path)) : group === 'message-providers' ? data(api.DELETE('/console/api/v1/message-providers/{id}', path)) : data(api.DELETE('/console/api/v1/inbound-providers/{id}', path)),
    )
  }
  return (
    <Paper withBorder p="sm" component="article" aria-label={kind.label}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Text size="sm" fw={600}>
            {kind.label}
          </Text>
          <Text size="xs" c="dimmed">
            {kind.about}
          </Text>
        </div>
        {set && (
          <Badge color="teal.9" variant="filled" tt="none" style={{ flex: 'none' }}>
            set
          </Badge>
        )}
      </Group>
      {set && (
        <Stack gap={2} mt="xs">
          {Object.entries(set.details).map(([k, v]) => (
            <Text key={k} size="xs" style={{ overflowWrap: 'anywhere' }}>
              <Text span c="dimmed">
                {k.replaceAll('_', ' ')}:{' '}
              </Text>
              {typeof v === 'string' ? v : JSON.stringify(v)}
            </Text>
          ))}
          <Text size="xs" c="dimmed">
            set on {date(set.updated_at)}
          </Text>
        </Stack>
      )}
      <Group gap="xs" mt="sm">
        <Button size="xs" variant="default" onClick={() => setEditing(true)} aria-label={`${set ? 'Replace' : 'Set up'} ${kind.label}`}>
          {set ? 'Replace' : 'Set up'}
        </Button>
        {set && (
          <Button size="xs" variant="default" loading={busy} onClick={() => void remove()} aria-label={`Delete ${kind.label}`}>
            Delete
          </Button>
        )}
      </Group>
      {editing && <Form group={group} kind={kind} onClose={() => setEditing(false)} onOnce={setOnce} />}
      <SecretOnce title={`What ${kind.label} proves itself with`} secrets={once} onClose={() => setOnce(null)} />
    </Paper>
  )
}

function Form({ group, kind, onClose, onOnce }: { group: Group3; kind: Kind; onClose: () => void; onOnce: (s: { label: string; value: string }[]) => void }) {
  const [at, setAt] = useState(0)
  const [values, setValues] = useState<Record<string, string | boolean>>({})
  const setup = kind.setups[at]!
  const [json, setJson] = useState<string | null>(null)
  const [wrong, setWrong] = useState('')
  const [act, busy] = useAct(group)
  const text = json ?? setup.json ?? ''
  const save = async () => {
    let body: Record<string, unknown>
    try {
      body = setup.json === undefined ? bodyOf(setup, values) : (parseJson(text) as Record<string, unknown>)
    } catch (e) {
      setWrong((e as Error).message)
      return
    }
    const call = { params: { path: { id: kind.id as never } }, body: body as never }
    const made = await act(`${kind.label} was not set up`, () =>
      group === 'push-credentials' ? data(api.PUT('/console/api/v1/push-credentials/{id}', call)) : group === 'message-providers' ? data(api.PUT('/console/api/v1/message-providers/{id}', call)) : data(api.PUT('/console/api/v1/inbound-providers/{id}', call)),
    )
    if (!made) return
    onClose()
    const once = Object.entries(made.once ?? {}).map(([k, v]) => ({ label: k.replaceAll('_', ' '), value: typeof v === 'string' ? v : JSON.stringify(v) }))
    if (once.length > 0) onOnce(once)
  }
  return (
    <Modal opened onClose={onClose} title={kind.label}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void save()
        }}
      >
        <Stack>
          {kind.setups.length > 1 && <NativeSelect label="How" value={at} onChange={(e) => (setAt(Number(e.currentTarget.value)), setValues({}), setJson(null))} data={kind.setups.map((s, i) => ({ value: String(i), label: s.label }))} />}
          {setup.json !== undefined && <Textarea label={setup.label} required autosize minRows={8} maxRows={18} value={text} onChange={(e) => (setJson(e.currentTarget.value), setWrong(''))} error={wrong} spellCheck={false} styles={{ input: { fontFamily: 'monospace' } }} />}
          {setup.fields.map((f) => {
            const value = String(values[f.name] ?? '')
            const set = (v: string | boolean) => setValues({ ...values, [f.name]: v })
            const common = { label: f.label, description: f.description, required: f.required, value, autoComplete: 'off' }
            if (f.kind === 'flag') return <Checkbox key={f.name} label={f.label} checked={values[f.name] === true} onChange={(e) => set(e.currentTarget.checked)} />
            if (f.kind === 'long' || f.kind === 'lines') return <Textarea key={f.name} {...common} autosize minRows={3} maxRows={10} onChange={(e) => set(e.currentTarget.value)} />
            if (f.kind === 'secret') return <PasswordInput key={f.name} {...common} autoComplete="new-password" onChange={(e) => set(e.currentTarget.value)} visibilityToggleButtonProps={{ 'aria-label': `Show: ${f.label}` }} />
            return <TextInput key={f.name} {...common} onChange={(e) => set(e.currentTarget.value)} />
          })}
          <Text size="xs" c="dimmed">
            It is taken in whole and never shown again.
          </Text>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={busy}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
