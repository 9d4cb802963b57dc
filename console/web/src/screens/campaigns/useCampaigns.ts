import { useQuery } from '@tanstack/react-query'
import { api, data, whole, type Schemas } from '@/shared/api/client'
import { allPages } from '@/shared/api/pages'
import type { CapturedChannel } from '@/shared/captured'

export type Campaign = Schemas['Campaign']
export type Stats = Schemas['ConsoleCampaignStats']

export const mostListed = 2000

/** The newest campaigns, the newest first, without their texts. */
export const useCampaigns = () =>
  useQuery({
    queryKey: ['campaigns'],
    queryFn: ({ signal }) => allPages((cursor) => whole(api.GET('/console/api/v1/campaigns', { params: { query: { limit: 100, sort: 'newest', cursor } }, signal })), mostListed),
  })

export const campaignQuery = (id: string) => ({ queryKey: ['campaign', id], queryFn: () => data(api.GET('/console/api/v1/campaigns/{id}', { params: { path: { id } } })) })

const moving = (status: string) => status === 'sending' || status === 'testing' || status === 'waiting'

/** The numbers of a campaign: read each second while it is being sent, and with follow then every five, because the stream of events has no opens and clicks. */
export const useStats = (id: string, { enabled = true, follow = false } = {}) =>
  useQuery({
    queryKey: ['campaign', id, 'stats'],
    queryFn: () => data(api.GET('/console/api/v1/campaigns/{id}/stats', { params: { path: { id } } })),
    refetchInterval: (q) => (!q.state.data ? false : moving(q.state.data.status) ? 1000 : follow && q.state.data.runs.length > 0 ? 5000 : false),
    enabled,
  })

/** A channel of campaigns: how the API names it, and whether its text is HTML or has a subject. */
export interface Channel {
  medium: CapturedChannel
  type: 1 | 2 | 3 | 4
  service: 'whatsapp' | 'in_app' | ''
  name: string
  html: boolean
  subject: string | null
  /** Whether the message has a link of its own that it opens. */
  opens?: boolean
}

export const channels: Channel[] = [
  { medium: 'email', type: 1, service: '', name: 'E-mail', html: true, subject: 'Subject' },
  { medium: 'sms', type: 2, service: '', name: 'SMS', html: false, subject: null },
  { medium: 'whatsapp', type: 3, service: 'whatsapp', name: 'WhatsApp', html: false, subject: null },
  { medium: 'im', type: 3, service: '', name: 'Another messenger', html: false, subject: null },
  { medium: 'push', type: 4, service: '', name: 'Push', html: false, subject: 'Title', opens: true },
  { medium: 'in_app', type: 4, service: 'in_app', name: 'In-app', html: false, subject: 'Title', opens: true },
]

/** The channel of a campaign; of one of several channels the first. */
export const channelOf = (c: Pick<Campaign, 'type' | 'service' | 'channels'>) => (c.channels.length > 0 ? channelNamed(c.channels[0]!.channel) : channels.find((x) => x.type === (c.type ?? 1) && x.service === (c.service ?? ''))!)

export const channelNamed = (medium: string) => channels.find((x) => x.medium === medium)!

/** What a campaign of several channels is called. */
export const severalChannels = 'Several channels'

export const statusColours: Record<string, string> = { draft: 'gray', scheduled: 'indigo', sending: 'cyan', testing: 'cyan', waiting: 'indigo', sent: 'teal', stopped: 'red' }
