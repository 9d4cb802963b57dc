import { QueryClient } from '@tanstack/react-query'
import { onReturn } from './connection'
import { ApiError } from './errors'
import { watchSession } from './session'

/** Reads are repeated while the server is away, so that a page recovers by itself. */
export function newQueryClient() {
  const client = new QueryClient({
    defaultOptions: {
      queries: {
        networkMode: 'always',
        staleTime: 5000,
        retry: (failures, error) => error instanceof ApiError && error.unavailable && failures < 20,
        retryDelay: (failures, error) => (error instanceof ApiError && error.retryAfter ? error.retryAfter * 1000 : Math.min(250 * 2 ** failures, 4000)),
      },
      mutations: { networkMode: 'always', retry: false },
    },
  })
  watchSession(client)
  onReturn(() => void client.invalidateQueries())
  return client
}
