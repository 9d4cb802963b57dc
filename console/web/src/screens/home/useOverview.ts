import { useQuery } from '@tanstack/react-query'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'

const day = 86_400_000

/** The last days up to now, by hours or days. */
export function sinceDays(days: number, now = Date.now()) {
  return { from: new Date(now - days * day).toISOString(), granularity: days <= 1 ? ('hour' as const) : ('day' as const) }
}

export function useOverview(days: number) {
  const may = useMay()
  return useQuery({ queryKey: ['analytics', 'overview', days], queryFn: () => data(api.GET('/console/api/v1/analytics/overview', { params: { query: sinceDays(days) } })), enabled: may('analytics:read'), staleTime: 30_000 })
}

export function useEventVolumes(days: number) {
  const may = useMay()
  return useQuery({ queryKey: ['analytics', 'events', days], queryFn: () => data(api.GET('/console/api/v1/analytics/events', { params: { query: sinceDays(days) } })), enabled: may('analytics:read'), staleTime: 30_000 })
}
