import { Badge, Box, Button, Group, Stack, Text, Textarea } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { Icon } from '@/shared/icons'

const most = 500 // characters

/** What people say of an event type, and whether it is offered to them. */
export function Describe({ type }: { type: Pick<Schemas['EventType'], 'key' | 'description' | 'hidden'> }) {
  const [text, setText] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const client = useQueryClient()
  const writes = useMay()('events:write')
  const change = async (body: { description?: string; hidden?: boolean }, said: string) => {
    setBusy(true)
    try {
      await data(api.PATCH('/console/api/v1/catalog/{id}', { params: { path: { id: type.key } }, body }))
      await client.invalidateQueries({ queryKey: ['catalog'] })
      notifications.show({ message: said })
      setText(null)
    } catch (e) {
      notifications.show({ color: 'red', title: 'Nothing was changed', message: messageOf(e) })
    } finally {
      setBusy(false)
    }
  }
  const submit = (e: FormEvent) => {
    e.preventDefault()
    if (text !== null) void change({ description: text.trim() }, 'The description is saved.')
  }
  if (text !== null)
    return (
      <form onSubmit={submit}>
        <Stack gap="xs" maw={640}>
          <Textarea label="Description" description={`What it means and who sends it. ${[...text].length} of ${most} characters.`} value={text} onChange={(e) => setText([...e.currentTarget.value].slice(0, most).join(''))} autosize minRows={2} maxRows={8} autoFocus />
          <Group gap="xs">
            <Button type="submit" size="xs" loading={busy} disabled={text.trim() === type.description}>
              Save
            </Button>
            <Button size="xs" variant="default" onClick={() => setText(null)}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </form>
    )
  return (
    <Box component="section" aria-label="Description">
      {type.hidden && (
        <Group gap="xs" mb={4}>
          <Badge size="sm" variant="filled" color="gray.7" tt="none">
            hidden
          </Badge>
          <Text size="sm">It is not offered where types are chosen. Its events are stored, and conditions on them go on.</Text>
        </Group>
      )}
      <Text size="sm" maw={720} style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-line' }} c={type.description ? undefined : 'dimmed'}>
        {type.description || 'Nobody described it yet.'}
      </Text>
      {writes && (
        <Group gap="xs" mt="xs">
          <Button size="xs" variant="default" leftSection={<Icon name="edit" size={14} />} onClick={() => setText(type.description)}>
            Describe it
          </Button>
          <Button size="xs" variant="default" loading={busy} onClick={() => void change({ hidden: !type.hidden }, type.hidden ? `${type.key} is offered again.` : `${type.key} is hidden.`)}>
            {type.hidden ? 'Offer it again' : 'Hide it'}
          </Button>
        </Group>
      )}
    </Box>
  )
}
