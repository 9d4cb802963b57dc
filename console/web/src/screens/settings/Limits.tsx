import { ActionIcon, Button, Group, MultiSelect, NativeSelect, NumberInput, Stack, Switch, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { Icon } from '@/shared/icons'
import { QueryView } from '@/shared/states'
import { SettingsGroup, SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

type Settings = Schemas['Settings']
type Limits = NonNullable<Settings['sending_limits']>
type Cap = NonNullable<Limits['frequency_caps']>[number]
type Channel = NonNullable<Cap['channel']>

const channels: { value: Channel; label: string }[] = [
  { value: 'email', label: 'E-mail' },
  { value: 'sms', label: 'SMS' },
  { value: 'whatsapp', label: 'WhatsApp' },
  { value: 'im', label: 'Instant messenger' },
  { value: 'push', label: 'Push' },
  { value: 'in_app', label: 'In-app' },
]

const units = [
  { value: '1', label: 'hours' },
  { value: '24', label: 'days' },
]

/** /settings/limits: quiet hours, frequency caps, and the account's time zone. */
export function LimitsPage() {
  const may = useMay()
  const settings = useQuery({ queryKey: ['settings'], queryFn: () => data(api.GET('/console/api/v1/settings')), enabled: may('settings:read') })
  return (
    <SettingsPage section="/settings/limits" title="Sending limits">
      <Stack gap="lg">
        <Text size="sm" c="dimmed" maw={620}>
          These hold for all campaigns and flows together, unless a message is marked to ignore them. Single messages that a program sends by the API are exempt.
        </Text>
        <QueryView query={settings} what="the settings">
          {(s) => <Form key={JSON.stringify(s)} saved={s} />}
        </QueryView>
      </Stack>
    </SettingsPage>
  )
}

function Form({ saved }: { saved: Settings }) {
  const writes = useMay()('settings:write')
  const before: Limits = saved.sending_limits ?? { timezone: 'UTC', quiet_hours: null, frequency_caps: [] }
  const [limits, setLimits] = useState(before)
  const [act, busy] = useAct('settings')
  const set = (part: Partial<Limits>) => setLimits({ ...limits, ...part })
  const quiet = limits.quiet_hours ?? undefined
  const setQuiet = (part: Partial<NonNullable<Limits['quiet_hours']>>) => quiet && set({ quiet_hours: { ...quiet, ...part } })
  const caps = limits.frequency_caps ?? []
  const setCap = (at: number, part: Partial<Cap>) => set({ frequency_caps: caps.map((c, i) => (i === at ? { ...c, ...part } : c)) })
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault()
        void act('The limits were not saved', () => data(api.PUT('/console/api/v1/settings', { body: { ...saved, sending_limits: limits } })), 'The limits are saved.')
      }}
    >
      <Stack>
        <SettingsGroup title="Time zone">
          <TextInput
            label="Time zone of the account"
            description="That of people of whom no time zone is known: geo.timezone and attributes.timezone of a profile say it."
            placeholder="Europe/Berlin"
            value={limits.timezone ?? ''}
            onChange={(e) => set({ timezone: e.currentTarget.value.trim() })}
            disabled={!writes}
            maw={420}
          />
        </SettingsGroup>
        <SettingsGroup title="Quiet hours">
          <Switch
            label="Send no messages at night"
            checked={quiet !== undefined}
            onChange={(e) => set({ quiet_hours: e.currentTarget.checked ? { from: '22:00', to: '08:00', channels: [], then: 'wait' } : null })}
            disabled={!writes}
          />
          {quiet && (
            <>
              <Group gap="sm" align="flex-end">
                <TextInput type="time" label="From" value={quiet.from} onChange={(e) => setQuiet({ from: e.currentTarget.value })} disabled={!writes} w={130} required />
                <TextInput type="time" label="To" value={quiet.to} onChange={(e) => setQuiet({ to: e.currentTarget.value })} disabled={!writes} w={130} required />
                <Text size="sm" c="dimmed" pb={6}>
                  by the person's clocks
                </Text>
              </Group>
              <MultiSelect label="Channels" description="None are all." data={channels} value={quiet.channels ?? []} onChange={(v) => setQuiet({ channels: v as Channel[] })} disabled={!writes} maw={420} clearable />
              <NativeSelect
                label="What happens to a message then"
                value={quiet.then ?? 'wait'}
                onChange={(e) => setQuiet({ then: e.currentTarget.value as 'wait' })}
                data={[
                  { value: 'wait', label: 'It waits until they end' },
                  { value: 'skip', label: 'The person does not get it' },
                ]}
                disabled={!writes}
                maw={420}
              />
            </>
          )}
        </SettingsGroup>
        <SettingsGroup title="Frequency caps">
          {caps.length === 0 && (
            <Text size="sm" c="dimmed">
              A person gets any number of messages.
            </Text>
          )}
          {caps.map((c, i) => {
            const unit = c.hours % 24 === 0 ? 24 : 1
            return (
              <Group key={i} gap="xs" align="flex-end" role="group" aria-label={`Cap ${i + 1}`}>
                <NumberInput label="At most" value={c.messages} onChange={(v) => typeof v === 'number' && setCap(i, { messages: v })} min={1} max={100} allowDecimal={false} disabled={!writes} w={90} />
                <NativeSelect
                  label="Messages by"
                  value={c.channel ?? ''}
                  onChange={(e) => setCap(i, { channel: (e.currentTarget.value || undefined) as Channel | undefined })}
                  data={[{ value: '', label: 'any channel' }, ...channels]}
                  disabled={!writes}
                  w={170}
                />
                <NumberInput label="In any" value={c.hours / unit} onChange={(v) => typeof v === 'number' && setCap(i, { hours: v * unit })} min={1} max={8784 / unit} allowDecimal={false} disabled={!writes} w={90} />
                <NativeSelect aria-label="Unit" value={String(unit)} onChange={(e) => setCap(i, { hours: (c.hours / unit) * Number(e.currentTarget.value) })} data={units} disabled={!writes} w={100} />
                {writes && (
                  <ActionIcon variant="default" size="lg" aria-label={`Remove cap ${i + 1}`} onClick={() => set({ frequency_caps: caps.filter((_, k) => k !== i) })}>
                    <Icon name="x" size={14} />
                  </ActionIcon>
                )}
              </Group>
            )
          })}
          {writes && caps.length < 20 && (
            <Group>
              <Button size="xs" variant="default" leftSection={<Icon name="plus" size={14} />} onClick={() => set({ frequency_caps: [...caps, { messages: 3, hours: 168 }] })}>
                Another cap
              </Button>
            </Group>
          )}
          <Text size="xs" c="dimmed">
            Messages count from when a cap is set. People who have had that many are skipped, with the reason frequency_cap in the numbers.
          </Text>
        </SettingsGroup>
        {writes && (
          <Group>
            <Button type="submit" loading={busy} disabled={JSON.stringify(limits) === JSON.stringify(before)}>
              Save
            </Button>
          </Group>
        )}
      </Stack>
    </form>
  )
}
