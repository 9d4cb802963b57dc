import { Alert, Button, Checkbox, Group, NativeSelect, NumberInput, Stack, TagsInput, Text, Title } from '@mantine/core'
import { useState } from 'react'
import type { Schemas } from '@/shared/api/client'
import { Code } from '@/shared/Code'
import { Icon } from '@/shared/icons'
import { JsonError, JsonNumber, parseJson, writeJson, type Json } from '@/shared/json'
import { fromJson } from '../segments/definition'
import { sentence } from '../segments/sentence'
import { offered, useCatalog, useLists, useNames, useSegments } from '../segments/useSuggestions'
import { Suggest } from '../segments/inputs'
import { ConditionEditor } from './ConditionEditor'
import { faultWords } from './faultWords'
import { ChannelFields, Field, MessageFields, type Set } from './MessageFields'
import { channelNumbers, digits, lead, list, outlets, stepNames, text, triggerNames, whole, type Definition, type Fields, type Step } from './model'

/** A field of JSON within a step; what cannot be read is not taken over. */
function JsonField({ label, value, onChange, description, readOnly }: { label: string; value: Json | undefined; onChange: (v: Json) => void; description: string; readOnly: boolean }) {
  const [typed, setTyped] = useState(() => (value === undefined ? '' : writeJson(value, 2)))
  const [problem, setProblem] = useState<{ at: number; message: string } | null>(null)
  return (
    <div>
      <Text size="sm" fw={500}>
        {label}
      </Text>
      <Text size="xs" c="dimmed" mb={2}>
        {description}
      </Text>
      <Code
        language="json"
        label={label}
        value={typed}
        readOnly={readOnly}
        minHeight={70}
        problem={problem}
        onChange={(v) => {
          setTyped(v)
          try {
            onChange(parseJson(v))
            setProblem(null)
          } catch (e) {
            setProblem({ at: e instanceof JsonError ? e.at : 0, message: e instanceof Error ? e.message : String(e) })
          }
        }}
      />
      {problem && (
        <Text role="alert" size="xs" c="var(--mantine-color-error)">
          {problem.message}
        </Text>
      )}
    </div>
  )
}

export function TriggerPanel({ d, edit, faults, readOnly }: { d: Definition; edit: (d: Definition) => void; faults: string[]; readOnly: boolean }) {
  const segments = useSegments()
  const lists = useLists()
  const catalog = useCatalog()
  const t = d.trigger ?? {}
  const set: Set = (part) => edit({ ...d, trigger: { ...t, ...part } })
  const type = text(t.type)
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        Trigger
      </Title>
      <Faults faults={faults} />
      <NativeSelect label="Begins when somebody" value={type} disabled={readOnly} onChange={(e) => edit({ ...d, trigger: e.currentTarget.value ? { type: e.currentTarget.value } : null })} data={[{ value: '', label: 'Choose …' }, ...Object.entries(triggerNames).map(([value, label]) => ({ value, label }))]} />
      {type.startsWith('segment_') && <NativeSelect label="Segment" value={text(t.segment_id)} disabled={readOnly} onChange={(e) => set({ segment_id: e.currentTarget.value })} data={[{ value: '', label: 'Choose …' }, ...(segments.data ?? []).map((s) => ({ value: s._id, label: s.name }))]} description={type === 'segment_entered' ? 'Who is in it when the flow is published begins too.' : undefined} />}
      {type === 'list_joined' && <NativeSelect label="List" value={text(t.list_id)} disabled={readOnly} onChange={(e) => set({ list_id: e.currentTarget.value })} data={[{ value: '', label: 'Choose …' }, ...(lists.data ?? []).map((l) => ({ value: l._id, label: l.name }))]} />}
      {type === 'event' && (
        <>
          <div>
            <Text size="sm" fw={500}>
              Event
            </Text>
            <Suggest label="Event" value={text(t.event)} onChange={(v) => set({ event: v.trim() })} from={offered(catalog.data).map((x) => ({ value: x.key }))} placeholder="item_purchased" least={24} />
          </div>
          <JsonField key="where" label="Only where" description='Filters that must all hold, such as [{"property": "value", "op": ">", "value": 50}].' value={t.where ?? []} onChange={(where) => set({ where })} readOnly={readOnly} />
        </>
      )}
      {type === 'date' && (
        <>
          <Field label="Field with the date" of={t} name="field" set={set} readOnly={readOnly} placeholder="attributes.renewal" />
          <NumberInput label="Days after it" description="Negative is before it." value={Number(digits(t.offset_days) || 0)} onChange={(v) => set({ offset_days: whole(String(v)) ?? new JsonNumber('0') })} readOnly={readOnly} />
          <Field label="At the time" of={t} name="at" set={set} readOnly={readOnly} placeholder="09:00" />
          <Field label="Time zone" of={t} name="timezone" set={set} readOnly={readOnly} placeholder="Europe/Berlin" />
          <NativeSelect label="Repeats" value={text(t.repeat) || 'once'} disabled={readOnly} onChange={(e) => set({ repeat: e.currentTarget.value })} data={['once', 'yearly']} />
        </>
      )}
      <NativeSelect label="Again" value={d.reentry} disabled={readOnly} onChange={(e) => edit({ ...d, reentry: e.currentTarget.value })} data={[{ value: 'once', label: 'Each person goes through it once' }, { value: 'after_exit', label: 'Each person may begin again after its end' }]} />
    </Stack>
  )
}

const Faults = ({ faults }: { faults: string[] }) =>
  faults.length > 0 && (
    <Alert color="red" variant="light" p="xs" icon={<Icon name="alert" />} title="Before it can be published">
      {faults.map((f) => (
        <Text key={f} size="xs">
          {faultWords(f)}
        </Text>
      ))}
    </Alert>
  )

export function StepPanel({ d, step, set, onRemove, faults, numbers, readOnly }: { d: Definition; step: Step; set: (s: Step) => void; onRemove: () => void; faults: string[]; numbers: Schemas['FlowStepCount'] | undefined; readOnly: boolean }) {
  const put: Set = (part) => {
    const next: Fields = { ...step, ...part }
    for (const k of Object.keys(part)) if (part[k] === undefined) delete next[k]
    set(next as Step)
  }
  const others = d.steps.filter((s) => s.id !== step.id)
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {stepNames[step.type] ?? step.type}
        </Title>
        {!readOnly && (
          <Button size="xs" variant="default" onClick={onRemove} leftSection={<Icon name="trash" size={14} />}>
            Remove
          </Button>
        )}
      </Group>
      <Text size="xs" c="dimmed">
        id {step.id}
      </Text>
      <Faults faults={faults} />
      {numbers?.channels.map((c) => (
        <Text key={c.channel} size="xs" className="numbers" data-testid="channel-numbers">
          {channelNumbers(c)}
        </Text>
      ))}
      <Content step={step} put={put} readOnly={readOnly} />
      {outlets(step).map((o) => (
        <NativeSelect
          key={o.key}
          label={step.type === 'condition' ? `Where it ${o.key === 'yes' ? 'holds' : 'does not hold'}` : step.type === 'split' ? `Way ${Number(o.key) + 1} leads to` : 'Then'}
          value={o.to ?? ''}
          disabled={readOnly}
          onChange={(e) => set(lead(step, o.key, e.currentTarget.value || null))}
          data={[{ value: '', label: 'The end' }, ...others.map((s) => ({ value: s.id, label: `${stepNames[s.type] ?? s.type} (${s.id})` }))]}
        />
      ))}
    </Stack>
  )
}

function Content({ step, put, readOnly }: { step: Step; put: Set; readOnly: boolean }) {
  const names = useNames()
  const [asking, setAsking] = useState(false)
  const field = (label: string, name: string, placeholder?: string, description?: string) => <Field label={label} of={step} name={name} set={put} readOnly={readOnly} placeholder={placeholder} description={description} />
  switch (step.type) {
    case 'email':
    case 'sms':
    case 'whatsapp':
    case 'im':
    case 'push':
    case 'in_app':
      return <MessageFields key={step.id} channel={step.type} of={step} put={put} readOnly={readOnly} />
    case 'omnichannel':
      return <ChannelFields key={step.id} step={step} put={put} readOnly={readOnly} />
    case 'wait': {
      const until = step.until !== undefined
      const seconds = Number(digits(step.seconds) || 0)
      const unit = [86_400, 3600, 60].find((u) => seconds % u === 0 && seconds >= u) ?? 1
      return (
        <>
          <NativeSelect label="Waits" value={until ? 'until' : 'for'} disabled={readOnly} onChange={(e) => put(e.currentTarget.value === 'until' ? { until: '09:00', seconds: undefined as never } : { seconds: new JsonNumber('86400'), until: undefined as never, timezone: undefined as never })} data={[{ value: 'for', label: 'for some time' }, { value: 'until', label: 'until a local time' }]} />
          {until ? (
            <>
              {field('Until', 'until', '09:00', 'A time of the day, such as 09:00, or a day and a time, such as 2030-01-31T09:00.')}
              {field('Time zone', 'timezone', 'UTC')}
            </>
          ) : (
            <Group grow align="flex-end" gap="xs">
              <NumberInput label="How long" min={1} value={seconds / unit || ''} onChange={(v) => Number(v) >= 1 && put({ seconds: new JsonNumber(String(Math.round(Number(v)) * unit)) })} readOnly={readOnly} />
              <NativeSelect aria-label="Unit" value={String(unit)} disabled={readOnly} onChange={(e) => put({ seconds: new JsonNumber(String(Math.max(1, seconds / unit) * Number(e.currentTarget.value))) })} data={[{ value: '1', label: 'seconds' }, { value: '60', label: 'minutes' }, { value: '3600', label: 'hours' }, { value: '86400', label: 'days' }]} />
            </Group>
          )}
        </>
      )
    }
    case 'condition': {
      let words = ''
      try {
        words = step.if ? sentence(fromJson(step.if), names) : ''
      } catch {
        words = writeJson(step.if)
      }
      return (
        <>
          <Text size="sm">{words || 'Nothing is asked yet.'}</Text>
          {!readOnly && (
            <Button variant="default" size="xs" onClick={() => setAsking(true)}>
              Edit the condition
            </Button>
          )}
          <Checkbox label="And the person has an open cart" checked={step.open_cart === true} disabled={readOnly} onChange={(e) => put({ open_cart: (e.currentTarget.checked || undefined) as never })} />
          {asking && (
            <ConditionEditor
              value={step.if}
              onClose={() => setAsking(false)}
              onSave={(v) => {
                setAsking(false)
                put({ if: v })
              }}
            />
          )}
        </>
      )
    }
    case 'split': {
      const branches = list(step.branches) as Fields[]
      return (
        <>
          {branches.map((b, i) => (
            <Group key={i} gap="xs" align="flex-end" wrap="nowrap">
              <NumberInput flex={1} label={`Weight of way ${i + 1}`} min={1} max={1_000_000} value={Number(digits(b.weight) || 1)} onChange={(v) => put({ branches: branches.map((x, k) => (k === i ? { ...x, weight: whole(String(v)) ?? new JsonNumber('1') } : x)) })} readOnly={readOnly} />
              {!readOnly && branches.length > 2 && (
                <Button variant="default" px="xs" aria-label={`Remove way ${i + 1}`} onClick={() => put({ branches: branches.filter((_, k) => k !== i) })}>
                  <Icon name="x" size={14} />
                </Button>
              )}
            </Group>
          ))}
          {!readOnly && branches.length < 20 && (
            <Button size="xs" variant="default" onClick={() => put({ branches: [...branches, { weight: new JsonNumber('1'), next: null }] })}>
              Another way
            </Button>
          )}
        </>
      )
    }
    case 'tag':
      return (
        <>
          <TagsInput label="Adds" value={list(step.add).map(String)} onChange={(add) => put({ add })} readOnly={readOnly} maxTags={50} acceptValueOnBlur />
          <TagsInput label="Removes" value={list(step.remove).map(String)} onChange={(remove) => put({ remove })} readOnly={readOnly} maxTags={50} acceptValueOnBlur />
        </>
      )
    case 'update_contact':
      return <JsonField key={step.id} label="Sets" description='Fields and their values, such as {"attributes.plan": "gold"}; null removes.' value={step.set ?? {}} onChange={(v) => put({ set: v })} readOnly={readOnly} />
    case 'webhook':
      return (
        <>
          {field('URL', 'url', 'https://hooks.example.com/x')}
          <NativeSelect label="Method" value={text(step.method) || 'POST'} disabled={readOnly} onChange={(e) => put({ method: e.currentTarget.value })} data={['POST', 'PUT', 'PATCH', 'GET', 'DELETE']} />
          <JsonField key={`h${step.id}`} label="Headers" description='Such as {"X-Key": "k"}.' value={step.headers ?? {}} onChange={(headers) => put({ headers })} readOnly={readOnly} />
          <JsonField key={`b${step.id}`} label="Body" description="A text in quotes, an object or an array; it may have merge tags." value={step.body ?? {}} onChange={(body) => put({ body })} readOnly={readOnly} />
          <Group grow gap="xs">
            <NumberInput label="Attempts" min={1} max={10} value={Number(digits(step.attempts) || 5)} onChange={(v) => put({ attempts: whole(String(v)) ?? new JsonNumber('5') })} readOnly={readOnly} />
            <NumberInput label="Seconds each" min={1} max={30} value={Number(digits(step.timeout_seconds) || 10)} onChange={(v) => put({ timeout_seconds: whole(String(v)) ?? new JsonNumber('10') })} readOnly={readOnly} />
          </Group>
          <NativeSelect label="When all failed" value={text(step.on_failure) || 'continue'} disabled={readOnly} onChange={(e) => put({ on_failure: e.currentTarget.value })} data={[{ value: 'continue', label: 'go on' }, { value: 'exit', label: 'leave the flow' }]} />
        </>
      )
  }
  return (
    <Text size="sm" c="dimmed">
      People leave the flow here.
    </Text>
  )
}
