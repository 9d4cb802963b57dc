import { Button, Group, NativeSelect, NumberInput, Paper, Stack, Switch, TagsInput, Text, TextInput, PasswordInput, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay, useSession } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { CopyButton } from '@/shared/CopyButton'
import { QueryView } from '@/shared/states'
import { allPages } from './allPages'
import { SettingsGroup, SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

type Settings = Schemas['Settings']

/** /settings: what holds for the whole account, and one's own password. */
export function AccountSettings() {
  const may = useMay()
  const session = useSession().data
  const settings = useQuery({ queryKey: ['settings'], queryFn: () => data(api.GET('/console/api/v1/settings')), enabled: may('settings:read') })
  return (
    <SettingsPage section="/settings" title="Account">
      <Stack gap="lg">
        {session && (
          <Group gap="xs">
            <Text size="sm" c="dimmed">
              Account {session.account_id}
            </Text>
            <CopyButton value={session.account_id} label="Copy the id" size="compact-xs" />
          </Group>
        )}
        <QueryView query={settings} what="the settings">
          {(s) => <Form key={JSON.stringify(s)} saved={s} />}
        </QueryView>
        <Password />
      </Stack>
    </SettingsPage>
  )
}

function Form({ saved }: { saved: Settings }) {
  const may = useMay()
  const confirm = useConfirm()
  const admin = useSession().data?.admin ?? false
  const writes = may('settings:write')
  const [s, setS] = useState(saved)
  const [act, busy] = useAct('settings')
  const templates = useQuery({ queryKey: ['templates', 'names'], queryFn: () => allPages((cursor) => api.GET('/console/api/v1/templates', { params: { query: { limit: 100, cursor } } })), enabled: may('templates:read') })
  const set = (part: Partial<Settings>) => setS({ ...s, ...part })
  const hours = (key: 'idempotency_hours' | 'max_event_age_hours' | 'flow_event_age_hours' | 'identifier_cap' | 'surface_c_per_minute', label: string, description: string, min: number, max: number, disabled = false) => (
    <NumberInput label={label} description={description} value={s[key] ?? ''} onChange={(v) => typeof v === 'number' && set({ [key]: v })} min={min} max={max} allowDecimal={false} disabled={!writes || disabled} maw={420} thousandSeparator="," />
  )
  const changed = JSON.stringify(s) !== JSON.stringify(saved)
  const save = async () => {
    if (saved.require_opt_in && !s.require_opt_in && !(await confirm({ title: 'Send to people who never agreed?', body: 'Campaigns and e-mails of flows then also go to people who never said yes or no, such as those known from events alone. In many countries that is not allowed.', yes: 'Send to them too', danger: true }))) return
    await act('The settings were not saved', () => data(api.PUT('/console/api/v1/settings', { body: s })), 'The settings are saved.')
  }
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault()
        void save()
      }}
    >
      <Stack gap="md">
        <SettingsGroup title="Consent">
          <Switch label="Send only to subscribers" description="Campaigns and e-mails of flows go to people who agreed, not to those who never said yes or no." checked={s.require_opt_in} onChange={(e) => set({ require_opt_in: e.currentTarget.checked })} disabled={!writes} />
          <Switch label="Confirm subscriptions by e-mail" description="Who subscribes gets a message, and counts as subscribed once they follow its link." checked={s.double_opt_in} onChange={(e) => set({ double_opt_in: e.currentTarget.checked })} disabled={!writes} />
          {s.double_opt_in && <NativeSelect label="Template of that message" value={s.confirm_template_id ?? ''} onChange={(e) => set({ confirm_template_id: e.currentTarget.value || undefined })} data={[{ value: '', label: 'The service’s own words' }, ...(templates.data ?? []).map((t) => ({ value: t._id, label: t.name }))]} maw={420} disabled={!writes} />}
        </SettingsGroup>
        <SettingsGroup title="Events">
          {hours('max_event_age_hours', 'Oldest event, in hours', 'An event whose timestamp is older is refused. Imports are not.', 0, 87840)}
          {hours('flow_event_age_hours', 'Oldest event that starts flows, in hours', 'Older events are stored, but start no flow.', 0, 87840)}
          {hours('idempotency_hours', 'Idempotency keys hold, in hours', 'A repeat under the same key within this time changes nothing.', 72, 2160)}
          <Switch label="Take events with unknown fields" description="Otherwise an event with an unknown top-level field is refused." checked={s.ignore_unknown_event_fields ?? false} onChange={(e) => set({ ignore_unknown_event_fields: e.currentTarget.checked })} disabled={!writes} />
        </SettingsGroup>
        <SettingsGroup title="Identifiers">
          <TagsInput label="Values that are no identifiers" description="An event that gives one of them as e-mail, phone or external id is refused, so that strangers are not merged." value={s.placeholders} onChange={(v) => set({ placeholders: v })} disabled={!writes} />
          {hours('identifier_cap', 'Identifiers a person may have', 'A guard against records that join everybody.', 1, 500)}
        </SettingsGroup>
        <Paper withBorder p="md">
          {hours('surface_c_per_minute', 'Requests of a key under /v1 in a minute', admin ? 'Keys that ask more often are told to wait.' : 'Keys that ask more often are told to wait. Only administrators of the system raise it.', 1, 1_000_000)}
        </Paper>
        {writes && (
          <Group>
            <Button type="submit" loading={busy} disabled={!changed}>
              Save
            </Button>
            <Button variant="default" disabled={!changed} onClick={() => setS(saved)}>
              Undo
            </Button>
          </Group>
        )}
      </Stack>
    </form>
  )
}

function Password() {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const [act, busy] = useAct('session')
  const email = useSession().data?.email ?? ''
  return (
    <Paper withBorder p="md" maw={460}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void act('The password was not changed', () => data(api.PUT('/console/api/v1/password', { body: { current_password: current, password: next } })), 'Your password is changed. Your other sessions are over.').then((a) => a && (setCurrent(''), setNext('')))
        }}
      >
        <Stack>
          <Title order={3} size="h5">
            Your password
          </Title>
          <TextInput type="hidden" name="username" autoComplete="username" value={email} readOnly style={{ display: 'none' }} />
          <PasswordInput label="Current password" autoComplete="current-password" required value={current} onChange={(e) => setCurrent(e.currentTarget.value)} visibilityToggleButtonProps={{ 'aria-label': 'Show the current password' }} />
          <PasswordInput label="New password" autoComplete="new-password" required value={next} onChange={(e) => setNext(e.currentTarget.value)} visibilityToggleButtonProps={{ 'aria-label': 'Show the new password' }} />
          <Group>
            <Button type="submit" variant="default" loading={busy} disabled={!current || !next}>
              Change it
            </Button>
          </Group>
        </Stack>
      </form>
    </Paper>
  )
}
