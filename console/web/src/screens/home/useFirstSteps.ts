import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { useStream, type StreamState } from '@/shared/useStream'

/** An event as the live stream tells it. */
export interface Arrived {
  profile_id: string
  event_type: string
  timestamp: string
  identity: { email?: string; external_id?: string; phone?: string }
}

export interface Refusal {
  event_type: string
  timestamp: string
  reason: string
}

export interface FirstSteps {
  /** undefined while it is not known, or may not be known. */
  hasEvents?: boolean
  failed: unknown
  retry: () => void
  /** The event that came while the page was open. */
  arrived: Arrived | null
  /** The latest event that was refused, as long as none was stored. */
  refused: Refusal | null
  stream: StreamState
  /** How many there are; undefined where it is not known. */
  segments?: number
  messages?: number
  verified?: boolean
  done: boolean
}

/** How far an account is. The first event shows by the live stream; nothing is asked for again and again. */
export function useFirstSteps(): FirstSteps {
  const may = useMay()
  const client = useQueryClient()
  const catalog = useQuery({ queryKey: ['catalog'], queryFn: () => data(api.GET('/console/api/v1/catalog')), enabled: may('events:read') })
  const seen = catalog.data && catalog.data.some((t: Schemas['EventType']) => t.count > 0)
  const [arrived, setArrived] = useState<Arrived | null>(null)
  const [refused, setRefused] = useState<Refusal | null>(null)
  const waits = seen === false && arrived === null
  const stream = useStream(waits ? '/console/api/v1/events/live' : null, {
    event: (e) => {
      setArrived(e as Arrived)
      setRefused(null)
      void client.invalidateQueries({ queryKey: ['catalog'] })
    },
    refused: (e) => setRefused(e as Refusal),
  })
  const first = { params: { query: { limit: 1 } } }
  const segments = useQuery({ queryKey: ['first', 'segments'], queryFn: () => data(api.GET('/console/api/v1/segments', first)), enabled: may('segments:read') })
  const flows = useQuery({ queryKey: ['first', 'flows'], queryFn: () => data(api.GET('/console/api/v1/flows', first)), enabled: may('flows:read') })
  const campaigns = useQuery({ queryKey: ['first', 'campaigns'], queryFn: () => data(api.GET('/console/api/v1/campaigns', first)), enabled: may('campaigns:read') })
  const domains = useQuery({ queryKey: ['sender-domains'], queryFn: () => data(api.GET('/console/api/v1/sender-domains')), enabled: may('settings:read') })
  const messages = flows.data || campaigns.data ? (flows.data?.length ?? 0) + (campaigns.data?.length ?? 0) : undefined
  const verified = domains.data?.some((d) => d.verified)
  const hasEvents = arrived ? true : seen
  return {
    hasEvents,
    failed: catalog.error,
    retry: () => void catalog.refetch(),
    arrived,
    refused,
    stream,
    segments: segments.data?.length,
    messages,
    verified,
    done: hasEvents !== false && segments.data?.length !== 0 && messages !== 0 && verified !== false,
  }
}
