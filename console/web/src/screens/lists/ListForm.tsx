import { Button, Group, Modal, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, data } from '@/shared/api/client'
import { ApiError, messageOf } from '@/shared/api/errors'
import type { List } from './useLists'

/** A form that makes a list, or changes the name and the description of one. */
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
  const client = useQueryClient()
  const save = useMutation({
    mutationFn: () => {
      const body = { name: name.trim(), description: description.trim() }
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
        {save.error && field !== 'name' && field !== 'description' && (
          <Text size="sm" c="var(--mantine-color-error)" role="alert">
            {messageOf(save.error)}
          </Text>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={save.isPending} disabled={!name.trim()}>
            {of ? 'Save' : 'Create'}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
