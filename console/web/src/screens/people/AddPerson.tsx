import { Button, Group, Modal, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState, type FormEvent } from 'react'
import { api, data } from '@/shared/api/client'
import { ApiError, messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { useLists } from '../segments/useSuggestions'

const fields = [
  { name: 'email', label: 'E-mail' },
  { name: 'first_name', label: 'First name' },
  { name: 'last_name', label: 'Last name' },
  { name: 'phone', label: 'Phone' },
  { name: 'external_id', label: 'External id' },
] as const

/** A form that makes a contact, and leads to it. */
export function AddPerson({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [values, setValues] = useState<Record<string, string>>({})
  const client = useQueryClient()
  const navigate = useNavigate()
  const may = useMay()
  const lists = useLists()
  const add = useMutation({
    mutationFn: () => data(api.POST('/console/api/v1/contacts', { body: Object.fromEntries(Object.entries(values).filter(([, v]) => v.trim() !== '')) })),
    onSuccess: (contact) => {
      void client.invalidateQueries({ queryKey: ['people'] })
      setValues({})
      void navigate({ to: '/people/$id', params: { id: contact._id } })
    },
  })
  const error = add.error
  const field = error instanceof ApiError ? error.field : ''
  const submit = (e: FormEvent) => {
    e.preventDefault()
    add.mutate()
  }
  return (
    <Modal opened={opened} onClose={onClose} title="Add a person">
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          {fields.map((f, i) => (
            <TextInput key={f.name} label={f.label} value={values[f.name] ?? ''} onChange={(e) => setValues({ ...values, [f.name]: e.currentTarget.value })} error={field === f.name ? messageOf(error) : undefined} data-autofocus={i === 0 || undefined} autoComplete="off" />
          ))}
          {may('lists:write') && lists.data && lists.data.length > 0 && <NativeSelect label="List" value={values.list_id ?? ''} onChange={(e) => setValues({ ...values, list_id: e.currentTarget.value })} data={[{ value: '', label: 'None' }, ...lists.data.map((l) => ({ value: l._id, label: l.name }))]} />}
          {error && !fields.some((f) => f.name === field) && (
            <Text size="sm" c="var(--mantine-color-error)" role="alert">
              {messageOf(error)}
            </Text>
          )}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={add.isPending} disabled={!fields.some((f) => values[f.name]?.trim())}>
              Add
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
