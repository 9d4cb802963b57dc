import { count } from '@/shared/format'
import { JsonNumber, type Json } from '@/shared/json'
import { type TemplateButton, type TemplateLocation, type TemplateValues } from '@/shared/templateValues'

export type Fields = { [key: string]: Json }

/** A step: what of it is not named here is of its type. */
export interface Step extends Fields {
  id: string
  type: string
}

export interface Definition {
  name: string
  trigger: Fields | null
  reentry: string
  steps: Step[]
}

export const stepNames: Record<string, string> = { email: 'E-mail', sms: 'Text message', whatsapp: 'WhatsApp message', im: 'Instant message', push: 'Push message', in_app: 'In-app message', omnichannel: 'Several channels', wait: 'Wait', condition: 'Condition', split: 'Split', tag: 'Tags', update_contact: 'Change the person', webhook: 'Webhook', exit: 'Exit' }
export const triggerNames: Record<string, string> = { segment_entered: 'Enters a segment', segment_exited: 'Leaves a segment', list_joined: 'Joins a list', event: 'Does something', date: 'Reaches a date', api: 'Is enrolled through the API' }

/** What of a flow as it is answered makes its definition. */
export function definitionOf(v: Json): Definition {
  const f = v as Fields
  return { name: String(f.name ?? ''), trigger: (f.trigger as Fields | null) ?? null, reentry: String(f.reentry ?? 'once'), steps: ((f.steps as Json[] | undefined) ?? []) as Step[] }
}

/** Reads a definition that a person typed; throws with what is wrong. */
export function checked(v: Json): Definition {
  if (v === null || typeof v !== 'object' || Array.isArray(v) || v instanceof JsonNumber) throw new Error('A flow is an object with name, trigger and steps.')
  const steps = v.steps ?? []
  if (!Array.isArray(steps)) throw new Error('steps must be an array.')
  const seen = new Set<string>()
  steps.forEach((s, i) => {
    const step = s as Step | null
    if (step === null || typeof step !== 'object' || typeof step.id !== 'string' || typeof step.type !== 'string') throw new Error(`steps[${i}] must have an id and a type.`)
    if (seen.has(step.id)) throw new Error(`steps[${i}].id: there is a step ${step.id} already.`)
    seen.add(step.id)
  })
  return definitionOf(v)
}

export const text = (v: Json | undefined) => (typeof v === 'string' ? v : '')
export const digits = (v: Json | undefined) => (v instanceof JsonNumber ? v.text : '')
export const whole = (s: string): Json | undefined => (/^-?\d{1,9}$/.test(s.trim()) ? new JsonNumber(String(Number(s))) : undefined)
export const list = (v: Json | undefined): Json[] => (Array.isArray(v) ? v : [])

const placeOf = (m: Fields): TemplateLocation => ({ latitude: text(m.latitude), longitude: text(m.longitude), name: text(m.name), address: text(m.address) })

/** The values of a template of WhatsApp that a message has. */
export const templateValues = (m: Fields): TemplateValues => ({
  parameters: list(m.parameters).map(String),
  named_parameters: Object.fromEntries(Object.entries((m.named_parameters as Fields | undefined) ?? {}).map(([name, value]) => [name, text(value)])),
  header: text(m.header),
  header_type: text(m.header_type) as TemplateValues['header_type'],
  header_name: text(m.header_name),
  header_filename: text(m.header_filename),
  header_location: m.header_location ? placeOf(m.header_location as Fields) : null,
  buttons: (list(m.buttons) as Fields[]).map((b) => ({ type: (text(b.type) || 'url') as TemplateButton['type'], index: Number(digits(b.index) || 0), value: text(b.value) })),
})

/** The fields of a message for the values of a template; those without a value are undefined. */
export function templateFields(v: TemplateValues): Fields {
  const given = (value: Json, is: boolean) => (is ? value : (undefined as never))
  return {
    parameters: given(v.parameters, v.parameters.length > 0),
    named_parameters: given(v.named_parameters, Object.keys(v.named_parameters).length > 0),
    header: given(v.header, v.header !== ''),
    header_type: given(v.header_type, v.header_type !== ''),
    header_name: given(v.header_name, v.header_name !== ''),
    header_filename: given(v.header_filename, v.header_filename !== ''),
    header_location: given(Object.fromEntries(Object.entries(v.header_location ?? {}).filter(([, value]) => value !== '')), v.header_location !== null),
    buttons: given(
      v.buttons.map((b) => ({ type: b.type, index: new JsonNumber(String(b.index)), value: b.value })),
      v.buttons.length > 0,
    ),
  }
}

/** A way out of a step: to a step, to the end (null), or not given (undefined). */
export interface Outlet {
  key: string
  label: string
  to: string | null | undefined
}

export function outlets(s: Step): Outlet[] {
  const ref = (v: Json | undefined) => (typeof v === 'string' ? v : v === null ? null : undefined)
  if (s.type === 'exit') return []
  if (s.type === 'condition') return [{ key: 'yes', label: 'yes', to: ref(s.yes) }, { key: 'no', label: 'no', to: ref(s.no) }]
  if (s.type === 'split') {
    const branches = list(s.branches) as Fields[]
    const sum = branches.reduce((n, b) => n + Number(digits(b.weight) || 0), 0)
    return branches.map((b, i) => ({ key: String(i), label: sum ? `${Math.round((Number(digits(b.weight) || 0) / sum) * 1000) / 10} %` : '', to: ref(b.next) ?? null }))
  }
  return [{ key: 'next', label: '', to: ref(s.next) ?? null }]
}

/** Leads a way out of a step elsewhere. */
export function lead(s: Step, key: string, to: string | null): Step {
  if (s.type === 'split') return { ...s, branches: list(s.branches).map((b, i) => (String(i) === key ? { ...(b as Fields), next: to } : b)) }
  return { ...s, [key]: to }
}

function fresh(type: string, id: string, to: string | null): Step {
  switch (type) {
    case 'wait':
      return { id, type, seconds: new JsonNumber('86400'), next: to }
    case 'condition':
      return { id, type, yes: to, no: null }
    case 'split':
      return { id, type, branches: [{ weight: new JsonNumber('1'), next: to }, { weight: new JsonNumber('1'), next: null }] }
    case 'exit':
      return { id, type }
  }
  return { id, type, next: to }
}

function newId(d: Definition, type: string): string {
  for (let n = 1; ; n++) {
    const id = n === 1 ? type : `${type}_${n}`
    if (!d.steps.some((s) => s.id === id)) return id
  }
}

/** Puts a new step on a way out of a step; from null is the way from the trigger. It returns the new step's id too. */
export function insert(d: Definition, from: string | null, key: string, type: string): { d: Definition; id: string } {
  const id = newId(d, type)
  if (from === null) return { d: { ...d, steps: [fresh(type, id, d.steps[0]?.id ?? null), ...d.steps] }, id }
  const at = d.steps.findIndex((s) => s.id === from)
  const before = d.steps[at]!
  const to = outlets(before).find((o) => o.key === key)?.to ?? null
  const steps = d.steps.map((s) => (s.id === from ? lead(s, key, id) : s))
  steps.splice(at + 1, 0, fresh(type, id, to))
  return { d: { ...d, steps }, id }
}

/** Takes a step out; what led to it leads to what its first way led to. */
export function remove(d: Definition, id: string): Definition {
  const gone = d.steps.find((s) => s.id === id)
  if (!gone) return d
  const to = outlets(gone)[0]?.to ?? null
  const rest = d.steps.filter((s) => s.id !== id).map((s) => outlets(s).reduce((x, o) => (o.to === id ? lead(x, o.key, to) : x), s))
  // The first step is the entry: it must stay the one that followed.
  if (d.steps[0]?.id === id && to) rest.sort((a, b) => Number(b.id === to) - Number(a.id === to))
  return { ...d, steps: rest }
}

export const replace = (d: Definition, id: string, step: Step): Definition => ({ ...d, steps: d.steps.map((s) => (s.id === id ? step : s)) })

const units: [number, string][] = [[86_400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second']]

export function duration(seconds: number): string {
  const [size, name] = units.find(([n]) => seconds % n === 0 && seconds >= n) ?? [1, 'second']
  const n = seconds / size
  return `${n} ${name}${n === 1 ? '' : 's'}`
}

/** What became of the messages of a step of several channels on one of them. */
export function channelNumbers(c: { channel: string; queued: number; failed: number; skipped: Record<string, number> }): string {
  const skipped = Object.values(c.skipped).reduce((sum, n) => sum + n, 0)
  return `${stepNames[c.channel] ?? c.channel}: ${count(c.queued)} queued, ${count(c.failed)} could not be delivered, ${count(skipped)} not reached`
}

/** What a step does, in a line. */
export function summary(s: Step, template: (id: string) => string | undefined): string {
  switch (s.type) {
    case 'email':
      return text(s.template_id) ? `the template ${template(text(s.template_id)) ?? text(s.template_id)}` : text(s.subject)
    case 'sms':
    case 'im':
      return text(s.text)
    case 'whatsapp':
      return text(s.template) ? `the template ${text(s.template)}` : text(s.text)
    case 'push':
    case 'in_app':
      return text(s.title)
    case 'omnichannel':
      return list(s.channels).map((m) => stepNames[text((m as Fields).channel)] ?? '').join(', then ')
    case 'wait':
      return digits(s.seconds) ? duration(Number(digits(s.seconds))) : text(s.until) && `until ${text(s.until)} ${text(s.timezone)}`
    case 'tag':
      return [...list(s.add).map((t) => `+ ${String(t)}`), ...list(s.remove).map((t) => `− ${String(t)}`)].join(', ')
    case 'update_contact':
      return Object.keys((s.set as Fields | undefined) ?? {}).join(', ')
    case 'webhook':
      return text(s.url) && `${text(s.method) || 'POST'} ${text(s.url)}`
    case 'split':
      return `${list(s.branches).length} ways`
  }
  return ''
}
