import type { Schemas } from '@/shared/api/client'

export type Message = Schemas['CapturedMessage']

export const channelNames: Record<Message['channel'], string> = { email: 'E-mail', sms: 'SMS', push: 'Push', whatsapp: 'WhatsApp', im: 'Instant message', in_app: 'In-app' }

/** Why a message was not sent. captured are the channels whose messages the server keeps now. */
export function whyUnsent(channel: Message['channel'], captured: readonly string[]): string {
  const missing = channel === 'email' ? 'mail relay' : `provider for ${channel === 'im' ? 'instant messages' : channel === 'push' ? 'push messages' : channelNames[channel]}`
  return captured.includes(channel) ? `The server has no ${missing}.` : `The server had no ${missing} then. It has one now, but sends no old messages.`
}

/** What stands for a message in a list: its subject, or the beginning of its text. */
export const titleOf = (m: Pick<Message, 'subject' | 'body' | 'text'>) => m.subject || (m.body ?? m.text ?? '').trim().split('\n')[0]!.slice(0, 120) || 'without a subject'
