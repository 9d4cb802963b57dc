import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { createElement } from 'react'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useConfirm } from '@/shared/confirm'
import { identifierOf, nameOf } from '@/shared/person'
import type { channels } from '@/shared/peopleSearch'
import type { Person } from './usePeople'
import { channelName, channelTitle } from './words'

type Channel = (typeof channels)[number]

/** What can be done to a person. Each asks first where it has consequences. */
export function useActs(person: Person) {
  const client = useQueryClient()
  const confirm = useConfirm()
  const navigate = useNavigate()
  const name = nameOf(person)
  const path = { id: person.profile_id }
  const act = async (done: string, call: () => Promise<unknown>) => {
    try {
      await call()
    } catch (e) {
      notifications.show({ color: 'red', title: 'Nothing was changed', message: messageOf(e) })
      return false
    }
    notifications.show({ message: done })
    await Promise.all([client.invalidateQueries({ queryKey: ['person', person.profile_id] }), client.invalidateQueries({ queryKey: ['people'] }), client.invalidateQueries({ queryKey: ['lists'] })])
    return true
  }
  const consent = (channel: Channel, status: 'subscribed' | 'unsubscribed') => act(`${name} is ${status}: ${channelName(channel)}.`, () => data(api.POST('/console/api/v1/profiles/{id}/consent', { params: { path }, body: { channel, status } })))
  return {
    async unsubscribe(channel: Channel) {
      if (await confirm({ title: `Unsubscribe ${name} from ${channelName(channel)}?`, body: 'Campaigns and flows send no more messages on this channel. To get them again the person has to consent again.', yes: 'Unsubscribe', danger: true })) return consent(channel, 'unsubscribed')
    },
    async subscribe(channel: Channel) {
      if (await confirm({ title: `Subscribe ${name} to ${channelName(channel)}?`, body: 'Only with the person’s consent: it is recorded with you as its source and the present time.', yes: 'They consented: subscribe' })) return consent(channel, 'subscribed')
    },
    async suppress(channel: Channel) {
      if (await confirm({ title: `Block ${channelName(channel)} for ${name}?`, body: 'Nothing at all is sent on this channel until the block is lifted, whatever the person consented to.', yes: 'Block', danger: true })) return act(`${channelTitle(channel)} is blocked.`, () => data(api.POST('/console/api/v1/profiles/{id}/suppression', { params: { path }, body: { channel } })))
    },
    async unsuppress(channel: Channel) {
      const why = person.suppressions[channel]
      if (await confirm({ title: `Lift the block of ${channelName(channel)}?`, body: why === 'bounced' ? 'An address that bounced will probably bounce again, which harms the reputation of your domain.' : why === 'complained' ? 'The person reported a message as spam. Messages to them harm the reputation of your domain.' : 'Messages can be sent again, as far as the person consented to them.', yes: 'Lift the block' })) return act(`The block of ${channelName(channel)} is lifted.`, () => data(api.DELETE('/console/api/v1/profiles/{id}/suppression', { params: { path, query: { channel } } })))
    },
    addToList(list: { _id: string; name: string }) {
      return act(`${name} is on ${list.name}.`, () => data(api.POST('/console/api/v1/lists/{id}/contacts', { params: { path: { id: list._id } }, body: { email: person.identities.email[0]! } })))
    },
    async removeFromList(list: { _id: string; name: string }) {
      if (await confirm({ title: `Take ${name} off ${list.name}?`, body: 'Segments that use the list are re-evaluated for this person.', yes: 'Take off', danger: true })) return act(`${name} is off ${list.name}.`, () => data(api.DELETE('/console/api/v1/lists/{id}/members/{profile}', { params: { path: { id: list._id, profile: person.profile_id } } })))
    },
    async erase() {
      const body = [
        `The profile ${identifierOf(person)}, its events, messages and consents are removed from the state, the log and history, for good. Counts of the past stay.`,
        'A hash of each identifier is kept, so that later events of this person are refused. There is no undo.',
      ]
      if (!(await confirm({ title: `Erase ${name}?`, body: body.map((text, i) => createElement('p', { key: i, style: { marginTop: 0 } }, text)), yes: 'Erase for good', danger: true }))) return
      try {
        await data(api.DELETE('/console/api/v1/profiles/{id}', { params: { path } }))
      } catch (e) {
        notifications.show({ color: 'red', title: 'Nothing was erased', message: messageOf(e) })
        return
      }
      notifications.show({ message: `${name} is erased.` })
      await navigate({ to: '/people' })
      client.removeQueries({ queryKey: ['person', person.profile_id] })
      await client.invalidateQueries({ queryKey: ['people'] })
    },
  }
}

export type Acts = ReturnType<typeof useActs>
