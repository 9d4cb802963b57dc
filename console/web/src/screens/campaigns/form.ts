import { noValues, type TemplateValues } from '@/shared/templateValues'
import { channelNamed, channelOf, type Campaign, type Channel } from './useCampaigns'

/** What of a campaign is edited. */
export interface Form {
  name: string
  subject: string
  body: string
  sender: string
  sender_name: string
  reply_to: string
  link: string
  /** Whether the clicks on links of a text or a push message are counted. */
  track_links: boolean
  /** Options of a push message. */
  push: { image: string; collapse: string; ttl_seconds: number }
  /** Options of an in-app message. */
  in_app: { display: 'inbox' | 'banner' | 'modal'; image: string; priority: number; ttl_hours: number }
  /** The template that is sent by WhatsApp in place of the body; its name is "" for none. */
  whatsapp: { template: string; language: string } & TemplateValues
  /** The channels of a campaign of several, in the order of preference. */
  channels: ChannelForm[]
  /** The template that is sent in place of the body, "" for none. */
  template_id: string
  list_id: string[]
  segment_ids: string[]
  /** How many people it is sent to at most in a minute or an hour; 0 for no bound. */
  rate: { messages: number; per: 'minute' | 'hour' }
  /** Whether quiet hours and frequency caps do not hold for it. */
  ignore_sending_limits: boolean
}

/** The message of a channel. That of e-mail is the campaign's own: its texts here are not used. */
export type ChannelForm = Pick<Form, 'subject' | 'body' | 'sender' | 'link' | 'push' | 'in_app' | 'whatsapp'> & { channel: Channel['medium'] }

const noPush = { image: '', collapse: '', ttl_seconds: 0 }
const inAppDefaults: Form['in_app'] = { display: 'inbox', image: '', priority: 0, ttl_hours: 720 }
const noTemplate: Form['whatsapp'] = { template: '', language: '', ...noValues }

export const newChannel = (channel: Channel['medium']): ChannelForm => ({ channel, subject: '', body: '', sender: '', link: '', push: noPush, in_app: inAppDefaults, whatsapp: noTemplate })

export const formOf = (c: Campaign): Form => ({
  name: c.name, subject: c.subject, body: c.body ?? '', sender: c.sender, sender_name: c.sender_name, reply_to: c.reply_to, link: c.link ?? '',
  track_links: c.track_links,
  push: c.push ?? noPush,
  in_app: c.in_app ?? inAppDefaults,
  whatsapp: c.whatsapp ?? noTemplate,
  channels: c.channels.map((m) => ({ channel: m.channel, subject: m.subject, body: m.body, sender: m.sender, link: m.link ?? '', push: m.push ?? noPush, in_app: m.in_app ?? inAppDefaults, whatsapp: m.whatsapp ?? noTemplate })),
  // A body of its own goes before the template.
  template_id: c.body ? '' : (c.template_id ?? ''), list_id: c.list_id, segment_ids: c.segment_ids,
  rate: c.rate ?? { messages: 0, per: 'minute' }, ignore_sending_limits: c.ignore_sending_limits,
})

/** The fields that are saved. A template is sent where the body is empty. */
export const savedFields = (f: Form) => ({ ...f, in_app: inAppOf(f), name: f.name.trim(), body: f.template_id || f.whatsapp.template ? '' : f.body, whatsapp: whatsAppOf(f), push: pushOf(f), channels: channelsOf(f), rate: f.rate.messages > 0 ? f.rate : {} })

const channelsOf = (f: Form) =>
  f.channels.map((m) =>
    m.channel === 'email' ? { channel: m.channel } : { channel: m.channel, subject: m.subject, body: m.whatsapp.template ? '' : m.body, sender: m.sender, link: m.link, ...(m.channel === 'whatsapp' && { whatsapp: whatsAppOf(m) }), ...(m.channel === 'push' && { push: pushOf(m) }), ...(m.channel === 'in_app' && { in_app: inAppOf(m) }) },
  )

/** The part of a campaign of several channels that goes out on one of them, as a campaign of that channel; of any other the campaign itself. */
export function partOf(c: Campaign, f: Form, at: number): { campaign: Campaign; form: Form; set: (part: Partial<Form>) => Partial<Form> } {
  const m = f.channels[at]
  if (!m) return { campaign: c, form: f, set: (part) => part }
  const { type, service } = channelNamed(m.channel)
  const campaign = { ...c, channel: 2 as const, type, service: service || null, channels: [] }
  if (m.channel === 'email') return { campaign, form: { ...f, whatsapp: noTemplate }, set: (part) => part }
  const { channel: _, ...texts } = m
  const own = ['name', 'track_links', 'list_id', 'segment_ids', 'rate', 'ignore_sending_limits']
  return {
    campaign,
    form: { ...f, ...texts, template_id: '' },
    set: (part) => {
      const whole = Object.fromEntries(Object.entries(part).filter(([k]) => own.includes(k)))
      const texts = Object.fromEntries(Object.entries(part).filter(([k]) => !own.includes(k)))
      return Object.keys(texts).length === 0 ? whole : { ...whole, channels: f.channels.map((x, i) => (i === at ? { ...x, ...texts } : x)) }
    },
  }
}

/** The options of a push message as the API takes them: none is {}. */
const pushOf = (f: Pick<Form, 'push'>) => (f.push.image || f.push.collapse || f.push.ttl_seconds ? f.push : {})

/** The options of an in-app message as the API takes them: their defaults are {}. */
const inAppOf = (f: Pick<Form, 'in_app'>) => (JSON.stringify(f.in_app) === JSON.stringify(inAppDefaults) ? {} : f.in_app)

/** The template for WhatsApp as the API takes it: without a name it is none. */
const whatsAppOf = (f: Pick<Form, 'whatsapp'>) => (f.whatsapp.template.trim() ? { ...f.whatsapp, template: f.whatsapp.template.trim() } : {})

/** What the message has that its preview and its test show before it is saved. */
export function contentOf(f: Form, c: Campaign, at = 0): object {
  const m = f.channels[at]
  if (m) return { ...(m.channel === 'email' && contentOf({ ...partOf(c, f, at).form, channels: [] }, partOf(c, f, at).campaign)), channels: channelsOf(f), via: m.channel }
  const own = { subject: f.subject, sender_name: f.sender_name, ...(channelOf(c).opens && f.link && { link: f.link }) }
  if (channelOf(c).medium === 'whatsapp') return { body: f.whatsapp.template ? '' : f.body, whatsapp: whatsAppOf(f) }
  return f.template_id ? { ...own, template_id: f.template_id } : { ...own, body: f.body }
}

/** What is missing before it can be sent; "" for nothing. */
export function lacks(f: Form, c: Campaign): string {
  if (!f.name.trim()) return 'Name the campaign.'
  if (f.channels.length > 0) {
    for (const [i, m] of f.channels.entries()) {
      const part = partOf(c, f, i)
      const why = lacks({ ...part.form, channels: [] }, part.campaign)
      if (why) return `${channelNamed(m.channel).name}: ${why}`
    }
    return ''
  }
  if (!f.template_id && !f.whatsapp.template.trim() && !f.body.trim()) return 'The message is empty.'
  if (channelOf(c).subject && !f.subject.trim() && !f.template_id) return `The ${channelOf(c).subject!.toLowerCase()} is missing.`
  return ''
}

/** What an audience leaves out. */
export interface Except {
  segment_ids: string[]
  list_id: string[]
}

/** The definition of a segment of the chosen audience, or of everybody, without the members of segments and lists. */
export function exceptDefinition(f: Pick<Form, 'segment_ids' | 'list_id'>, except: Except) {
  const of = (x: Except) => [...x.segment_ids.map((segment_id) => ({ kind: 'segment' as const, segment_id })), ...x.list_id.map((list_id) => ({ kind: 'list' as const, list_id }))]
  const within = of(f)
  const audience = within.length > 1 ? [{ match: 'any' as const, conditions: within }] : within
  return { match: 'all' as const, conditions: [...audience, ...of(except).map((c) => ({ ...c, member: false as const }))] }
}

const mostName = 200 // characters of a segment's name

/** A name for that segment which no other has: Buyers except Newsletter. */
export function exceptName(audience: string[], except: string[], taken: string[]): string {
  const whole = `${audience.length > 0 ? audience.join(', ') : 'Everybody'} except ${except.join(', ')}`
  const cut = (most: number) => ([...whole].length > most ? `${[...whole].slice(0, most - 1).join('')}…` : whole)
  let name = cut(mostName)
  for (let n = 2; taken.includes(name); n++) name = `${cut(mostName - ` ${n}`.length)} ${n}`
  return name
}
