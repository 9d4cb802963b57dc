import { useCallback, useRef } from 'react'
import { useRouter } from '@tanstack/react-router'

/**
 * Says whether the way leads to another page already. A page is shown until the next one is
 * loaded: what it does a moment later, like keeping what was typed in the address, would
 * bring the person back.
 */
export function useLeaving() {
  const router = useRouter()
  const here = useRef(router.latestLocation.pathname)
  return useCallback(() => router.latestLocation.pathname !== here.current, [router])
}
