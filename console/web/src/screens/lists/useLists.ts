import { notifications } from '@mantine/notifications'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { api, data, type Schemas } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useConfirm } from '@/shared/confirm'
import { count } from '@/shared/format'
import { keptBy } from '@/shared/usedIn'

export type List = Schemas['List']

/** All that is read of lists has a key that begins with 'lists'. */
export const useList = (id: string) => useQuery({ queryKey: ['lists', id], queryFn: ({ signal }) => data(api.GET('/console/api/v1/lists/{id}', { params: { path: { id } }, signal })) })

export const useUses = (id: string) => useQuery({ queryKey: ['lists', id, 'uses'], queryFn: ({ signal }) => data(api.GET('/console/api/v1/lists/{id}/used-in', { params: { path: { id } }, signal })) })

/** Deletes a list after a question, unless something uses it; true when it is gone. */
export function useDeleteList() {
  const client = useQueryClient()
  const confirm = useConfirm()
  return async (l: List): Promise<boolean> => {
    try {
      if (keptBy(l.name, await data(api.GET('/console/api/v1/lists/{id}/used-in', { params: { path: { id: l._id } } })))) return false
      const people = l.contacts === 1 ? 'The person on it stays' : `The ${count(l.contacts)} people on it stay`
      if (!(await confirm({ title: `Delete ${l.name}?`, body: l.contacts === 0 ? 'The list is empty.' : `${people}; the list of its contacts is lost.`, yes: 'Delete', danger: true }))) return false
      await data(api.DELETE('/console/api/v1/lists/{id}', { params: { path: { id: l._id } } }))
    } catch (e) {
      notifications.show({ color: 'red', title: `${l.name} was not deleted`, message: messageOf(e) })
      return false
    }
    notifications.show({ message: `${l.name} is deleted.` })
    client.removeQueries({ queryKey: ['lists', l._id] })
    await Promise.all([client.invalidateQueries({ queryKey: ['lists'] }), client.invalidateQueries({ queryKey: ['people'] })])
    return true
  }
}
