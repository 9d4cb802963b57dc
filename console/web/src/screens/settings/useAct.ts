import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import { messageOf } from '@/shared/api/errors'

/**
 * Makes a change, then reads anew what it changed. A failure is shown with what failed;
 * the answer is undefined then.
 */
export function useAct(...changes: string[]) {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const keys = changes.join(' ')
  const act = useCallback(
    async <T>(failed: string, change: () => Promise<T>, done?: string): Promise<T | undefined> => {
      setBusy(true)
      try {
        const answer = await change()
        if (done) notifications.show({ message: done })
        return answer
      } catch (e) {
        notifications.show({ color: 'red', title: failed, message: messageOf(e) })
        return undefined
      } finally {
        setBusy(false)
        await Promise.all(keys.split(' ').map((k) => client.invalidateQueries({ queryKey: [k] })))
      }
    },
    [client, keys],
  )
  return [act, busy] as const
}
