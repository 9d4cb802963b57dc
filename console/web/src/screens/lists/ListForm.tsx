import { Button, Group, Modal, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, data } from '@/shared/api/client'
import { ApiError, messageOf } from '@/shared/api/errors'
import type { List } from './useLists'

/** A form that makes a list, or changes what it says and who sees it. */
export function ListForm({ opened, of, onClose, onSaved }: { opened: boolean; of?: List; onClose: () => void; onSaved: (list: List) => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title={of ? `Change ${of.name}` : 'New list'}>
      <Fields key={of?._id} of={of} onClose={onClose} onSaved={onSaved} />
    </Modal>
  )
}

function Fields({ of, onClose, onSaved }: { of?: List; onClose: () => void; onSaved: (list: List) => void }) {
  const [name, setName] = useState(of?.name ?? '')
  const [description, setDescription] = useState(of?.description ?? '')
  const [shown, setShown] = useState(of?.public ?? false)
  const [publicName, setPublicName] = useState(of?.public_name ?? '')
  const [publicDescription, setPublicDescription] = useState(of?.public_description ?? '')
  const client = useQueryClient()
  const save = useMutation({
    mutationFn: () => {
      const body = { name: name.trim(), description: description.trim(), public: shown, public_name: publicName.trim(), public_description: publicDescription.trim() }
      return of ? data(api.PUT('/console/api/v1/lists/{id}', { params: { path: { id: of._id } }, body })) : data(api.POST('/console/api/v1/lists', { body }))
    },
    onSuccess: async (list) => {
      await client.invalidateQueries({ queryKey: ['lists'] })
      onSaved(list)
    },
  })
  const field = save.error instanceof ApiError ? save.error.field : ''
  const said = (f: string) => (save.error && field === f ? messageOf(save.error) : undefined)
  const submit = (e: FormEvent) => {
    e.preventDefault()
    if (name.trim()) save.mutate()
  }
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        <TextInput label="Name" value={name} onChange={(e) => setName(e.currentTarget.value)} maxLength={200} error={said('name')} data-autofocus autoComplete="off" data-1p-ignore />
        <Textarea label="Description" description="What the list is for. Only your team sees it." value={description} onChange={(e) => setDescription(e.currentTarget.value)} autosize minRows={2} maxRows={6} maxLength={2000} error={said('description')} />
        <Switch label="Show it on the preference page" description="People join and leave it there themselves. Who leaves it there is not put on it again by anybody else." checked={shown} onChange={(e) => setShown(e.currentTarget.checked)} />
        {shown && (
          <>
            <TextInput label="Name that people read" value={publicName} onChange={(e) => setPublicName(e.currentTarget.value)} maxLength={200} error={said('public_name')} required autoComplete="off" data-1p-ignore />
            <Textarea label="Description that people read" value={publicDescription} onChange={(e) => setPublicDescription(e.currentTarget.value)} autosize minRows={2} maxRows={6} maxLength={1000} error={said('public_description')} />
          </>
        )}
        {save.error && !['name', 'description', 'public_name', 'public_description'].includes(field) && (
          <Text size="sm" c="var(--mantine-color-error)" role="alert">
            {messageOf(save.error)}
          </Text>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={save.isPending} disabled={!name.trim() || (shown && !publicName.trim())}>
            {of ? 'Save' : 'Create'}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
