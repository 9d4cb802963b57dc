import { Stack, Text } from '@mantine/core'
import { ScreenLink } from './ScreenLink'
import type { Use } from './usedIn'

const kinds: Record<string, string> = { segment: 'Segment', flow: 'Flow', campaign: 'Campaign', setting: 'Setting' }
const screens: Record<string, string> = { segment: '/segments/$id', flow: '/flows/$id', campaign: '/campaigns/$id' }

/** What refers to something, each a link to its screen. */
export function Uses({ uses, none }: { uses: Use[]; none: string }) {
  if (uses.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {none}
      </Text>
    )
  return (
    <Stack gap={4} component="ul" m={0} p={0} style={{ listStyle: 'none' }}>
      {uses.map((u) => (
        <Text key={u.kind + u._id} size="sm" component="li" style={{ overflowWrap: 'anywhere' }}>
          {kinds[u.kind] ?? u.kind}{' '}
          <UseLink use={u} />
        </Text>
      ))}
    </Stack>
  )
}

/** The name of one use as a link to its screen. */
export function UseLink({ use }: { use: Use }) {
  return (
    <ScreenLink to={screens[use.kind] ?? '/settings'} params={screens[use.kind] ? { id: use._id } : undefined} inherit underline="always">
      {use.name}
    </ScreenLink>
  )
}
