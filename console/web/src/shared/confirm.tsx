import { Button, Group, Modal, Stack, Text } from '@mantine/core'
import { createContext, useCallback, useContext, useRef, useState, type ReactNode } from 'react'

export interface Question {
  title: string
  /** What will happen, in a sentence or a few lines. */
  body: ReactNode
  /** The verb on the button, such as "Delete". */
  yes: string
  danger?: boolean
}

const Ask = createContext<(q: Question) => Promise<boolean>>(async () => false)

/** Asks before what cannot be undone: `if (await confirm({ … })) …`. */
export const useConfirm = () => useContext(Ask)

export function ConfirmProvider({ children }: { children: ReactNode }) {
  const [question, setQuestion] = useState<Question | null>(null)
  const [opened, setOpened] = useState(false)
  const answer = useRef<(yes: boolean) => void>(() => {})
  const ask = useCallback((q: Question) => {
    answer.current(false)
    setQuestion(q)
    setOpened(true)
    return new Promise<boolean>((resolve) => (answer.current = resolve))
  }, [])
  const close = (yes: boolean) => {
    answer.current(yes)
    setOpened(false)
  }
  return (
    <Ask.Provider value={ask}>
      {children}
      <Modal opened={opened} onClose={() => close(false)} title={question?.title} centered closeButtonProps={{ 'aria-label': 'Close' }}>
        <Stack>
          <Text size="sm" component="div">
            {question?.body}
          </Text>
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={() => close(false)}>
              Cancel
            </Button>
            <Button color={question?.danger ? 'red.9' : undefined} onClick={() => close(true)} data-autofocus>
              {question?.yes}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </Ask.Provider>
  )
}
