import { Box, Group, Stack, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import type { ReactNode } from 'react'

/** The frame of a screen: its title, what stands beside it, its actions, its content. */
export function Page({ title, aside, actions, children, wide = false }: { title: string; aside?: ReactNode; actions?: ReactNode; children: ReactNode; wide?: boolean }) {
  useDocumentTitle(`${title} · Muster`)
  return (
    <Stack gap="md" p={{ base: 'sm', sm: 'lg' }} maw={wide ? undefined : 1400} mx="auto">
      <Group justify="space-between" align="center" gap="sm" wrap="wrap">
        <Group gap="sm" align="baseline" wrap="wrap" style={{ minWidth: 0 }}>
          <Title order={1} size="h3" style={{ overflowWrap: 'anywhere' }}>
            {title}
          </Title>
          {aside && (
            <Text component="div" size="sm" c="dimmed">
              {aside}
            </Text>
          )}
        </Group>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      <Box>{children}</Box>
    </Stack>
  )
}
