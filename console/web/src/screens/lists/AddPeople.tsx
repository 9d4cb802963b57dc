import { Alert, Button, Group, Modal, Progress, Stack, Text, Textarea } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState, type FormEvent } from 'react'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { count } from '@/shared/format'
import { nameOf } from '@/shared/person'
import { PersonSearch } from '@/shared/PersonSearch'
import { ScreenLink } from '@/shared/ScreenLink'
import { addressesIn } from './addresses'
import type { List } from './useLists'

const most = 500 // addresses at a time; more are for an import

/** Puts people on a list: one that is found, or as many as there are addresses. */
export function AddPeople({ list, opened, onClose }: { list: List; opened: boolean; onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title={`Add people to ${list.name}`}>
      <Form list={list} onClose={onClose} />
    </Modal>
  )
}

function Form({ list, onClose }: { list: List; onClose: () => void }) {
  const [text, setText] = useState('')
  const [done, setDone] = useState<number | null>(null)
  const [failed, setFailed] = useState<{ address: string; message: string }[]>([])
  const over = useRef(false)
  const client = useQueryClient()
  const may = useMay()
  useEffect(() => {
    over.current = false
    return () => void (over.current = true)
  }, [])
  const { addresses, faults } = addressesIn(text)
  const put = (email: string) => data(api.POST('/console/api/v1/lists/{id}/contacts', { params: { path: { id: list._id } }, body: { email } }))
  const fresh = () => Promise.all(['lists', 'people', 'person'].map((k) => client.invalidateQueries({ queryKey: [k] })))

  const one = async (id: string) => {
    try {
      const p = await data(api.GET('/console/api/v1/profiles/{id}', { params: { path: { id } } }))
      const email = p.identities.email[0]
      if (!email) {
        notifications.show({ color: 'red', title: 'Nobody was added', message: `Lists hold people by e-mail, and ${nameOf(p)} has none.` })
        return
      }
      const before = p.lists.includes(list._id)
      if (!before) await put(email)
      notifications.show({ message: before ? `${nameOf(p)} is on ${list.name} already.` : `${nameOf(p)} is on ${list.name}.` })
      await fresh()
    } catch (e) {
      notifications.show({ color: 'red', title: 'Nobody was added', message: messageOf(e) })
    }
  }
  const submit = async (e: FormEvent) => {
    e.preventDefault()
    const wrong: typeof failed = []
    setFailed([])
    let added = 0
    for (const [i, address] of addresses.entries()) {
      if (over.current) break
      setDone(i)
      try {
        await put(address)
        added++
      } catch (e) {
        wrong.push({ address, message: messageOf(e) })
      }
    }
    setDone(null)
    setFailed(wrong)
    await fresh()
    notifications.show({ color: added === 0 ? 'red' : undefined, message: `${count(added)} of ${count(addresses.length)} ${addresses.length === 1 ? 'address is' : 'addresses are'} on ${list.name}.` })
    if (over.current) return
    if (wrong.length === 0) onClose()
    else setText(wrong.map((w) => w.address).join('\n'))
  }
  return (
    <form onSubmit={(e) => void submit(e)} noValidate>
      <Stack gap="md">
        <PersonSearch label="Find a person" onChoose={(id) => void one(id)} />
        <Textarea
          label="E-mail addresses"
          description="One per line, or separated by commas. Unknown addresses become contacts."
          value={text}
          onChange={(e) => setText(e.currentTarget.value)}
          autosize
          minRows={4}
          maxRows={12}
          error={faults.length > 0 ? `No e-mail: ${faults.slice(0, 3).join(', ')}${faults.length > 3 ? ` and ${count(faults.length - 3)} more` : ''}` : addresses.length > most ? `At most ${count(most)} at a time; import a file for more.` : undefined}
          data-autofocus={!may('contacts:read') || undefined}
          disabled={done !== null}
        />
        {failed.length > 0 && (
          <Alert role="alert" color="red" variant="light" title="These were not added">
            {failed.slice(0, 10).map((f) => (
              <Text key={f.address} size="sm" style={{ overflowWrap: 'anywhere' }}>
                {f.address}: {f.message}
              </Text>
            ))}
            {failed.length > 10 && <Text size="sm">and {count(failed.length - 10)} more</Text>}
          </Alert>
        )}
        {done !== null && <Progress value={(100 * done) / addresses.length} aria-label={`${count(done)} of ${count(addresses.length)} are added`} />}
        <Group justify="space-between" gap="xs">
          <Text size="xs" c="dimmed">
            Many people at once: <ScreenLink to="/imports" size="xs" underline="always">import a file</ScreenLink>.
          </Text>
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              Close
            </Button>
            <Button type="submit" loading={done !== null} disabled={addresses.length === 0 || faults.length > 0 || addresses.length > most}>
              {addresses.length > 1 ? `Add ${count(addresses.length)}` : 'Add'}
            </Button>
          </Group>
        </Group>
      </Stack>
    </form>
  )
}
