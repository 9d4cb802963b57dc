import { instant } from '@/shared/format'
import { stepNames } from './model'

const words: Record<string, string> = {
  done: 'is done',
  queued: 'is sent',
  delivered: 'is called',
  yes: 'Yes: it holds',
  no: 'No: it does not hold',
  skipped_no_address: 'Nothing is sent: there is no address',
  skipped_not_subscribed: 'Nothing is sent: not subscribed',
  skipped_blocked: 'Nothing is sent: the channel is blocked',
  skipped_quiet_hours: 'Nothing is sent: it is in the quiet hours',
  skipped_frequency_cap: 'Nothing is sent: the person has had enough messages',
  exited: 'leaves the flow here',
  pending: 'waits here',
}

/** What would become of a step. */
export function resultInWords(s: { type: string; result: string; until: string | null; branch: number | null; channel?: string | null; reason?: string | null }): string {
  if (s.result === 'failed' && s.reason) return `Nothing is sent: ${s.reason}`
  if (s.result === 'queued' && s.channel) return `is sent: ${(stepNames[s.channel] ?? s.channel).toLowerCase()}`
  if (s.type === 'wait') return s.until ? `waits until ${instant(s.until)}` : 'does not wait: its time is over'
  if (s.result === 'branch') return `takes way ${(s.branch ?? 0) + 1}`
  if (s.type === 'exit') return words.exited!
  return words[s.result] ?? s.result.replaceAll('_', ' ')
}
