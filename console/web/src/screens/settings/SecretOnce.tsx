import { Alert, Button, Code, Group, Modal, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { CopyButton } from '@/shared/CopyButton'
import { Icon } from '@/shared/icons'

/** Secrets that the server answers once. Only the button closes it, so that nobody loses them by a click beside it. */
export function SecretOnce({ title, secrets, note, onClose }: { title: string; secrets: { label: string; value: string }[] | null; note?: ReactNode; onClose: () => void }) {
  return (
    <Modal opened={secrets !== null} onClose={onClose} title={title} closeOnClickOutside={false} closeOnEscape={false} withCloseButton={false} size="lg" centered>
      <Stack>
        <Alert color="yellow" variant="light" icon={<Icon name="alert" />}>
          This is shown now and never again. Copy it to where it is needed.
        </Alert>
        {secrets?.map((s) => (
          <div key={s.label}>
            <Group justify="space-between" mb={4}>
              <Text size="sm" fw={600}>
                {s.label}
              </Text>
              <CopyButton value={s.value} label="Copy" />
            </Group>
            <Code block aria-label={s.label} tabIndex={0} style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>
              {s.value}
            </Code>
          </div>
        ))}
        {note && <Text size="sm">{note}</Text>}
        <Group justify="flex-end">
          <Button onClick={onClose}>I have stored it</Button>
        </Group>
      </Stack>
    </Modal>
  )
}
