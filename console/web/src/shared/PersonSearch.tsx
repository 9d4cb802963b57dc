import { Group, Select, Text } from '@mantine/core'
import { useQuery, keepPreviousData } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data } from './api/client'
import { messageOf } from './api/errors'
import { useMay } from './api/session'
import { Icon } from './icons'
import { identifierOf, nameOf } from './person'

/** Finds a person by what a name or an identifier begins with, and hands on the profile's id. */
export function PersonSearch({ label, placeholder = 'Name, e-mail, id or phone', onChoose }: { label: string; placeholder?: string; onChoose: (profileId: string) => void }) {
  const [text, setText] = useState('')
  const may = useMay()
  const q = text.trim()
  const found = useQuery({
    queryKey: ['people', 'search', q],
    queryFn: ({ signal }) => data(api.GET('/console/api/v1/profiles/search', { params: { query: { q, limit: 10 } }, signal })),
    enabled: q !== '' && may('contacts:read'),
    placeholderData: keepPreviousData,
  })
  const people = new Map((q === '' ? [] : (found.data ?? [])).map((p) => [p.profile_id, p]))
  if (!may('contacts:read')) return null
  return (
    <Select
      size="xs"
      label={label}
      placeholder={placeholder}
      leftSection={<Icon name="search" size={14} />}
      rightSection={<span />}
      searchable
      value={null}
      searchValue={text}
      onSearchChange={setText}
      onChange={(id) => {
        if (!id) return
        setText('')
        onChoose(id)
      }}
      data={[...people.values()].map((p) => ({ value: p.profile_id, label: nameOf(p) }))}
      filter={({ options }) => options}
      renderOption={({ option }) => {
        const p = people.get(option.value)
        return (
          <Group justify="space-between" wrap="nowrap" gap="xs" w="100%">
            <Text size="xs" truncate>
              {option.label}
            </Text>
            <Text size="xs" c="dimmed" truncate>
              {p ? identifierOf(p) : ''}
            </Text>
          </Group>
        )
      }}
      nothingFoundMessage={q === '' || found.isPending ? undefined : 'No one found'}
      error={found.isError ? messageOf(found.error) : undefined}
      comboboxProps={{ position: 'bottom-start' }}
    />
  )
}
