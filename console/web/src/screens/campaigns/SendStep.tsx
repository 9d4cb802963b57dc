import { Alert, Box, Button, Checkbox, Divider, Group, NativeSelect, NumberInput, SegmentedControl, Select, Stack, Text, TextInput } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { useState } from 'react'
import { Captured } from '@/shared/captured'
import { count, instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import type { useAudience } from './AudienceInputs'
import type { Form } from './form'
import { channelOf, type Campaign } from './useCampaigns'

export interface Test {
  subjects: string[]
  test_percent: number
  metric: 'opens' | 'clicks'
  wait_seconds: number
}

export type Start = { how: 'now' } | { how: 'later'; at: string; local: boolean } | { how: 'test'; test: Test }

const waits = [
  { value: '3600', label: '1 hour' },
  { value: '14400', label: '4 hours' },
  { value: '86400', label: '1 day' },
]

/** How a campaign is sent: now, later, or two or more subjects first. */
export function SendStep({ campaign, form, set, subject, everybody, audience, missing, pending, error, onStart, onUnschedule, may }: { campaign: Campaign; form: Form; set: (part: Partial<Form>) => void; subject: string; everybody: boolean; audience: ReturnType<typeof useAudience>['data']; missing: string; pending: boolean; error: string; onStart: (s: Start) => void; onUnschedule: () => void; may: boolean }) {
  const [how, setHow] = useState<Start['how']>('now')
  const [at, setAt] = useState<string | null>(null)
  const [local, setLocal] = useState(campaign.local_time)
  const [test, setTest] = useState<Test>({ subjects: [subject, ''], test_percent: 20, metric: 'opens', wait_seconds: 14400 })
  const media = campaign.channels.length > 0 ? campaign.channels.map((m) => m.channel) : [channelOf(campaign).medium]
  const email = channelOf(campaign).html && campaign.channels.length === 0
  const time = at ? new Date(at.replace(' ', 'T')) : null
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const people = audience ? count(audience.reachable) : '…'
  const stop =
    missing ||
    (audience === undefined ? 'Choose an audience first.' : audience.reachable === 0 ? 'Nobody would get it.' : '') ||
    (how === 'later' && everybody ? 'A campaign to all contacts cannot be scheduled: choose segments or lists.' : '') ||
    (how === 'later' && (!time || time.getTime() <= Date.now()) ? 'Choose a time that is to come.' : '') ||
    (how === 'test' && test.subjects.some((s) => !s.trim()) ? 'Give each variant a subject.' : '') ||
    (how === 'test' && new Set(test.subjects).size < test.subjects.length ? 'Two variants have the same subject.' : '')
  const begin = () => {
    if (how === 'now') onStart({ how })
    else if (how === 'later' && time) onStart({ how, at: local ? at!.replace(' ', 'T').slice(0, 16) : time.toISOString(), local })
    else if (how === 'test') onStart({ how, test })
  }
  return (
    <Stack gap="md">
      {campaign.scheduled_at && (
        <Alert color="indigo" variant="light" icon={<Icon name="clock" />} title={campaign.local_time ? `Scheduled for ${(campaign.date ?? '').replace('T', ' ')} of each person's clocks` : `Scheduled for ${instant(campaign.scheduled_at)}`}>
          <Group justify="space-between" gap="sm">
            <Text size="sm">{campaign.local_time ? `It begins on ${instant(campaign.scheduled_at)}, when the first clocks on Earth show it. Its audience is who belongs to it then.` : 'Its audience is who belongs to it then.'}</Text>
            <Button size="xs" variant="default" onClick={onUnschedule} disabled={!may}>
              Cancel the schedule
            </Button>
          </Group>
        </Alert>
      )}
      {campaign.schedule_error && (
        <Alert color="red" variant="light" icon={<Icon name="alert" />} title="It was not sent when it was due">
          {campaign.schedule_error}
        </Alert>
      )}
      <SegmentedControl
        aria-label="When it is sent"
        value={how}
        onChange={(v) => setHow(v as Start['how'])}
        data={[{ value: 'now', label: 'Now' }, { value: 'later', label: 'Later' }, ...(email ? [{ value: 'test', label: 'A/B test' }] : [])]}
      />
      {how === 'later' && <Checkbox label="In each person's own time zone" description="By the clocks of the account where a person's zone is not known. People whose clocks have shown the time get it at once." checked={local} onChange={(e) => setLocal(e.currentTarget.checked)} />}
      {how === 'later' && <DateTimePicker label="When" description={local ? "What the person's clocks show." : `In your time zone, ${zone}.`} value={at} onChange={setAt} minDate={new Date()} valueFormat="D MMM YYYY, HH:mm" placeholder="Day and time" maw={320} clearable />}
      {how === 'test' && (
        <Stack gap="sm">
          {test.subjects.map((s, i) => (
            <Group key={i} gap="xs" align="flex-end" wrap="nowrap">
              <TextInput flex={1} label={`Subject ${String.fromCharCode(65 + i)}`} value={s} maxLength={998} onChange={(e) => setTest({ ...test, subjects: test.subjects.map((x, k) => (k === i ? e.currentTarget.value : x)) })} />
              {test.subjects.length > 2 && (
                <Button variant="default" px="xs" aria-label={`Remove subject ${String.fromCharCode(65 + i)}`} onClick={() => setTest({ ...test, subjects: test.subjects.filter((_, k) => k !== i) })}>
                  <Icon name="x" size={14} />
                </Button>
              )}
            </Group>
          ))}
          {test.subjects.length < 10 && (
            <Box>
              <Button size="xs" variant="default" leftSection={<Icon name="plus" size={14} />} onClick={() => setTest({ ...test, subjects: [...test.subjects, ''] })}>
                Another subject
              </Button>
            </Box>
          )}
          <Group gap="sm" align="flex-end">
            <NumberInput label="Share of the audience that tests" value={test.test_percent} onChange={(v) => setTest({ ...test, test_percent: Math.min(100, Math.max(1, Number(v) || 1)) })} min={1} max={100} suffix=" %" w={220} />
            <Select label="The best has the most" value={test.metric} onChange={(v) => v && setTest({ ...test, metric: v as 'opens' })} data={[{ value: 'opens', label: 'opens' }, { value: 'clicks', label: 'clicks' }]} allowDeselect={false} w={180} />
            <Select label="It is chosen after" value={String(test.wait_seconds)} onChange={(v) => v && setTest({ ...test, wait_seconds: Number(v) })} data={waits} allowDeselect={false} w={160} />
          </Group>
          <Text size="xs" c="dimmed">
            Each person of the test gets one subject. After the wait the best one goes to the rest by itself.
          </Text>
        </Stack>
      )}
      <Group gap="sm" align="flex-end">
        <NumberInput label="At most" description="People; empty for as fast as possible" value={form.rate.messages || ''} onChange={(v) => set({ rate: { ...form.rate, messages: Number(v) || 0 } })} min={1} max={1000000} allowDecimal={false} thousandSeparator="," disabled={!may} w={240} />
        <NativeSelect aria-label="Unit of the rate" value={form.rate.per} onChange={(e) => set({ rate: { ...form.rate, per: e.currentTarget.value as 'minute' } })} data={[{ value: 'minute', label: 'a minute' }, { value: 'hour', label: 'an hour' }]} disabled={!may} w={130} />
      </Group>
      <Checkbox label="Ignore quiet hours and frequency caps" checked={form.ignore_sending_limits} onChange={(e) => set({ ignore_sending_limits: e.currentTarget.checked })} disabled={!may} />
      <Divider />
      {media.map((medium) => (
        <Captured key={medium} channel={medium} />
      ))}
      {stop && (
        <Text size="sm" c="dimmed" id="why-not">
          {stop}
        </Text>
      )}
      {error && (
        <Alert role="alert" color="red" variant="light" icon={<Icon name="alert" />}>
          {error}
        </Alert>
      )}
      <Group>
        <Button onClick={begin} disabled={!may || stop !== ''} loading={pending} leftSection={<Icon name={how === 'later' ? 'clock' : 'send'} size={14} />} aria-describedby={stop ? 'why-not' : undefined}>
          {how === 'now' ? `Send to ${people}` : how === 'later' ? 'Schedule' : 'Start the test'}
        </Button>
        {!may && (
          <Text size="sm" c="dimmed">
            You need the permission campaigns:write.
          </Text>
        )}
      </Group>
    </Stack>
  )
}
