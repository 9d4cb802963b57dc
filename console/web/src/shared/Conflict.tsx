import { Alert, Box, Button, Group, Text } from '@mantine/core'
import { useState } from 'react'
import { ApiError } from './api/errors'
import { useConfirm } from './confirm'
import { instant } from './format'
import { Icon } from './icons'
import { Lines } from './Lines'

/** Whether a save was refused because somebody saved another version meanwhile. */
export const isConflict = (error: unknown) => error instanceof ApiError && error.status === 409 && error.field === 'if_version'

/** What somebody else saved meanwhile; mine and theirs are texts to be compared. */
export interface Other {
  version: string
  by: { name: string; kind: string } | null
  at: string
  mine: string
  theirs: string
}

/** Says that somebody saved another version meanwhile, and lets the person look at it, take it, or save over it. */
export function Conflict({ other, onTake, onOverwrite, busy }: { other: Other; onTake: () => void; onOverwrite: () => void; busy: boolean }) {
  const [looks, setLooks] = useState(false)
  const confirm = useConfirm()
  const who = other.by?.name ? `${other.by.name}${other.by.kind === 'key' ? ' (API key)' : ''}` : 'Somebody'
  const take = async () => {
    if (await confirm({ title: 'Take theirs?', body: 'What you changed and did not save is lost.', yes: 'Take theirs', danger: true })) onTake()
  }
  return (
    <Alert role="alert" color="yellow" variant="light" my="sm" icon={<Icon name="alert" />} title="Somebody else changed this meanwhile" data-testid="conflict">
      <Text size="sm" mb="xs">
        {who} saved another version on {instant(other.at)}. Yours is not saved; it is still here.
      </Text>
      <Group gap="xs">
        <Button size="xs" variant="default" onClick={() => setLooks(!looks)} aria-expanded={looks}>
          {looks ? 'Hide the difference' : 'Look at the difference'}
        </Button>
        <Button size="xs" variant="default" onClick={() => void take()} disabled={busy}>
          Take theirs
        </Button>
        <Button size="xs" variant="default" onClick={onOverwrite} loading={busy}>
          Save mine over it
        </Button>
      </Group>
      {looks && (
        <Box mt="sm">
          <Text size="xs" mb={4}>
            From theirs (−) to yours (+):
          </Text>
          <Lines before={other.theirs} after={other.mine} />
        </Box>
      )}
    </Alert>
  )
}
