import type { Schemas } from '@/shared/api/client'
import type { IconName } from '@/shared/icons'
import { stepNames } from '../flows/model'
import { channelNames } from '../segments/fields'
import { capital } from './words'

export type Entry = Schemas['TimelineEntry']
export type Kind = Entry['kind']

/** The kinds of entries in the order of the filter. */
export const kindNames: Record<Kind, string> = {
  event: 'Events',
  transition: 'Segments',
  message: 'Messages',
  flow: 'Flows',
  step: 'Steps of flows',
  merge: 'Merges',
  consent: 'Consents',
  suppression: 'Suppressions',
  list: 'Lists',
  device: 'Devices',
}

export const kindIcons: Record<Kind, IconName> = { event: 'activity', transition: 'segment', message: 'mail', flow: 'flow', step: 'chevronRight', merge: 'users', consent: 'check', suppression: 'lock', list: 'list', device: 'send' }

/** What made somebody enter or leave a segment. */
export const causeNames: Record<Schemas['TimelineTransition']['cause'], string> = {
  event: 'by an event',
  expiry: 'because time passed',
  profile: 'by a change of the profile',
  merge: 'by a merge of two profiles',
  definition: 'when the segment was created or changed',
}

const text = (v: unknown) => (typeof v === 'string' ? v : '')
const channel = (c: unknown) => channelNames[text(c)] ?? text(c)

const results: Record<string, string> = {
  done: 'done',
  pending: 'is there now',
  queued: 'queued',
  yes: 'the condition held',
  no: 'the condition did not hold',
  branch: 'took a branch',
  delivered: 'delivered',
  failed: 'failed',
  skipped_no_address: 'not sent: no address',
  skipped_not_subscribed: 'not sent: not subscribed',
  skipped_blocked: 'not sent: the channel is blocked',
  skipped_quiet_hours: 'not sent: it was in the quiet hours',
  skipped_frequency_cap: 'not sent: the person had had enough messages',
  refused: 'refused',
  exited: 'left the flow',
}

export const resultName = (r: string) => results[r] ?? r.replaceAll('_', ' ')

/** What a step does, and its id where that says more than its kind. */
export const stepName = (id: string, type: string) => `${stepNames[type] ?? type}${new RegExp(`^${type.replace('update_contact', 'update(_contact)?')}[_-]?\\d*$`).test(id) ? '' : ` (${id})`}`

/** A heading and a detail for an entry of the timeline of a profile. */
export function wordsOf(e: Entry, profile?: string): { title: string; detail: string } {
  if (e.transition) {
    const name = e.transition.segment_name ?? 'a segment that was deleted'
    return { title: `${e.transition.entered ? 'Entered' : 'Left'} ${name}`, detail: causeNames[e.transition.cause] + (profile === undefined || e.transition.profile_id === profile ? '' : `; it was ${e.transition.profile_id}, which became part of this profile`) }
  }
  if (e.step) {
    const branch = e.step.branch === null ? '' : ` ${e.step.branch + 1}`
    return { title: `${e.step.flow_name}: ${stepName(e.step.step_id, e.step.step_type)}`, detail: resultName(e.step.result) + branch + (e.step.reason ? `: ${e.step.reason}` : '') }
  }
  if (e.merge) return { title: 'Another profile became part of this one', detail: e.merge.profile_id }
  if (!e.event) return { title: e.kind, detail: '' }
  const { event_type: type, properties: p } = e.event
  switch (type) {
    case 'page_viewed':
    case 'screen_viewed': {
      // A page's title is for people, its path is always there; an event without either is shown like any other.
      const name = [p.name, p.title, p.path, p.url].map(text).find((v) => v !== '')
      if (name === undefined) break
      const rest = [text(p.url) || text(p.path), p.referrer ? `from ${text(p.referrer)}` : ''].filter((v) => v !== '' && v !== name)
      return { title: `Viewed ${name}`, detail: rest.join(', ') }
    }
    case 'subscribed':
      return { title: `Subscribed to ${channel(p.channel)}`, detail: p.source ? `source: ${text(p.source)}` : '' }
    case 'unsubscribed':
      return { title: `Unsubscribed from ${channel(p.channel)}`, detail: p.source ? `source: ${text(p.source)}` : '' }
    case 'suppressed':
      return { title: `${capital(channel(p.channel))} was blocked`, detail: [text(p.reason), text(p.source)].filter(Boolean).join(', ') }
    case 'unsuppressed':
      return { title: `The block of ${channel(p.channel)} was lifted`, detail: text(p.reason) && `it was ${text(p.reason)}` }
    case 'signup_form_submitted':
      return { title: `Signed up by the form ${text(p.form_name)}`, detail: p.confirmed ? 'confirmed by e-mail' : '' }
    case 'revenue_recorded':
      return { title: p.kind === 'refund' ? `Refund of the order ${text(p.order_id)}` : `Order ${text(p.order_id)}`, detail: `${typeof p.amount === 'number' ? p.amount : ''} ${text(p.currency)}`.trim() }
    case 'list_joined':
      return { title: `Joined the list ${text(p.list_name)}`, detail: '' }
    case 'list_left':
      return { title: `Left the list ${text(p.list_name)}`, detail: '' }
    case 'flow_entered':
      return { title: `Entered the flow ${text(p.flow_name)}`, detail: '' }
    case 'flow_completed':
      return { title: `Completed the flow ${text(p.flow_name)}`, detail: '' }
    case 'flow_exited':
      return { title: `Left the flow ${text(p.flow_name)}`, detail: text(p.reason).replaceAll('_', ' ') }
    case 'device_registered':
      return { title: 'A device was registered', detail: text(p.kind) }
    case 'device_retired':
      return { title: 'A device was retired', detail: text(p.kind) }
  }
  if (e.kind === 'message' || e.kind === 'consent') {
    const [medium, deed] = split(type)
    return { title: `${capital(channel(medium))} ${deed.replaceAll('_', ' ')}`, detail: [p.campaign_name, p.flow_name, p.subject, p.url, p.reason].filter((v) => typeof v === 'string' && v !== '').join(', ') }
  }
  return { title: type, detail: summary(p) }
}

/** in_app_soft_bounced is in_app and soft_bounced. */
function split(type: string): [string, string] {
  const medium = Object.keys(channelNames).find((c) => type.startsWith(c + '_')) ?? ''
  return [medium, type.slice(medium ? medium.length + 1 : 0)]
}

/** The first properties of an event in one line. */
export function summary(properties: Record<string, unknown>): string {
  const parts = Object.entries(properties)
    .filter(([, v]) => v !== null && typeof v !== 'object')
    .slice(0, 4)
    .map(([k, v]) => `${k}: ${String(v).slice(0, 60)}`)
  const rest = Object.keys(properties).length - parts.length
  return parts.join(', ') + (rest > 0 ? `${parts.length ? ', ' : ''}${rest} more` : '')
}
