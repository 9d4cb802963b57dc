import { Box, Group, Text } from '@mantine/core'

const colours: Record<string, string> = { Subscribed: 'teal', Engaged: 'teal', Pending: 'yellow', 'At risk': 'orange', Unsubscribed: 'gray', Bounced: 'red', Complained: 'red', Suppressed: 'red' }

/** A status as a word with a dot of its colour; none is a dash. */
export function StatusText({ status }: { status: string | undefined }) {
  if (!status)
    return (
      <Text size="sm" c="dimmed">
        –
      </Text>
    )
  return (
    <Group gap={6} wrap="nowrap">
      <Box w={8} h={8} bg={`${colours[status] ?? 'gray'}.6`} style={{ borderRadius: 4, flex: 'none' }} aria-hidden />
      <Text size="sm">{status}</Text>
    </Group>
  )
}
