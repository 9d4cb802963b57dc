import { useQuery, type QueryClient } from '@tanstack/react-query'
import { api, data, setCSRF, whenSignedOut } from './client'
import { ApiError } from './errors'

export interface Session {
  email: string
  name: string
  company: string
  account_id: string
  app_id: string
  user_id: string
  permissions: string[]
  admin: boolean
}

const key = ['session'] as const

async function readSession(): Promise<Session | null> {
  try {
    const s = await data(api.GET('/console/api/v1/session'))
    setCSRF(s.csrf_token ?? '')
    last = s
    over = false
    return s
  } catch (e) {
    if (e instanceof ApiError && e.signedOut) {
      over = last !== undefined
      return null
    }
    throw e
  }
}

/** The last session of this page. Screens go on showing it behind the sign-in when it is over. */
let last: Session | undefined
let over = false

/** The session of the signed-in user, null where none is signed in. */
export const useSignedIn = () => useQuery({ queryKey: key, queryFn: readSession, staleTime: Infinity })

/** The session that the screens are shown for: the present one, or the last. */
export function useSession(): { data: Session | undefined } {
  const { data } = useSignedIn()
  return { data: data ?? last }
}

/** Whether the session of the page is over, so that calls are refused until somebody signs in. */
export const sessionIsOver = () => over

/** Whether the person has a permission such as segments:write. */
export function useMay() {
  const { data } = useSession()
  return (permission: string) => data?.permissions.includes(permission) ?? false
}

/** Notices in every call that the session is over. */
export function watchSession(client: QueryClient) {
  whenSignedOut(() => {
    over = true
    client.setQueryData(key, null)
  })
}

export async function signIn(client: QueryClient, email: string, password: string) {
  await data(api.POST('/console/api/v1/session', { body: { email, password, cookie: true } }))
  const again = over
  await client.fetchQuery({ queryKey: key, queryFn: readSession, staleTime: 0 })
  // What was refused meanwhile is asked for again.
  if (again) void client.invalidateQueries({ predicate: (q) => q.queryKey[0] !== key[0] })
}

/** Signs in by the link that the first start prints. */
export async function signInByLink(client: QueryClient, token: string) {
  await data(api.POST('/console/api/v1/session/link', { body: { token, cookie: true } }))
  await client.fetchQuery({ queryKey: key, queryFn: readSession, staleTime: 0 })
}

export async function signOut(client: QueryClient) {
  await data(api.DELETE('/console/api/v1/session'))
  setCSRF('')
  last = undefined
  client.clear()
  client.setQueryData(key, null)
}
