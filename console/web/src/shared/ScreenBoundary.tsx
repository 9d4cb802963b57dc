import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import type { ErrorComponentProps } from '@tanstack/react-router'
import { messageOf } from './api/errors'
import { Icon } from './icons'

/** What is shown in place of a screen that failed; the rest of the page goes on. */
export function ScreenBoundary({ error, reset }: ErrorComponentProps) {
  return (
    <Alert role="alert" color="red" variant="light" icon={<Icon name="alert" />} title="This screen failed" m="md">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{messageOf(error) || 'Its program has a fault.'} The rest of the console still works.</Text>
        <Group gap="xs">
          <Button size="xs" variant="default" onClick={reset}>
            Try again
          </Button>
          <Button size="xs" variant="default" onClick={() => window.location.reload()}>
            Reload the page
          </Button>
        </Group>
      </Stack>
    </Alert>
  )
}
