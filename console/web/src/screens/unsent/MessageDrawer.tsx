import { Alert, Box, Drawer, Group, Stack, Tabs, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { Code } from '@/shared/Code'
import { CopyButton } from '@/shared/CopyButton'
import { instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { writeJson } from '@/shared/json'
import { MessageFrame } from '@/shared/MessageFrame'
import { channelNames, titleOf, whyUnsent, type Message } from './words'

/** One message as its recipient would have seen it, its plain text, and all of it as JSON. */
export function MessageDrawer({ message, captured, onClose }: { message: Message | undefined; captured: readonly string[]; onClose: () => void }) {
  return (
    <Drawer opened={message !== undefined} onClose={onClose} position="right" size="xl" title={message && titleOf(message)}>
      {message && <View m={message} captured={captured} />}
    </Drawer>
  )
}

function View({ m, captured }: { m: Message; captured: readonly string[] }) {
  const text = m.body ?? m.text
  const source = writeJson(m, 2)
  return (
    <Stack gap="sm">
      <Box component="dl" m={0} style={{ display: 'grid', gridTemplateColumns: 'auto minmax(0, 1fr)', columnGap: 'var(--mantine-spacing-md)', rowGap: 4 }}>
        <Fact label="To">{m.to}</Fact>
        {m.from && <Fact label="From">{m.from}</Fact>}
        <Fact label="Channel">{channelNames[m.channel]}</Fact>
        <Fact label="When">
          {instant(m.at)}
          {(m.attempts ?? 1) > 1 && `; handed over ${m.attempts} times, last on ${instant(m.last_at ?? m.at)}`}
        </Fact>
        <Fact label="Why not sent">{whyUnsent(m.channel, captured)}</Fact>
      </Box>
      {m.truncated && (
        <Alert color="yellow" variant="light" p="xs" icon={<Icon name="alert" />}>
          It was too long to be kept whole.
        </Alert>
      )}
      <Tabs defaultValue={m.html ? 'html' : 'text'} keepMounted={false}>
        <Tabs.List mb="sm">
          {m.html && <Tabs.Tab value="html">Message</Tabs.Tab>}
          {(text || !m.html) && <Tabs.Tab value="text">{m.html ? 'Plain text' : 'Message'}</Tabs.Tab>}
          <Tabs.Tab value="source">Source</Tabs.Tab>
        </Tabs.List>
        {m.html && (
          <Tabs.Panel value="html">
            <MessageFrame html={m.html} title="The message" height={520} />
          </Tabs.Panel>
        )}
        <Tabs.Panel value="text">
          <Box component="pre" m={0} p="sm" bg="var(--panel)" tabIndex={0} role="region" aria-label="Text of the message" fz="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere', overflow: 'auto', maxHeight: 520, borderRadius: 'var(--mantine-radius-sm)' }}>
            {text || 'The message has no text.'}
          </Box>
        </Tabs.Panel>
        <Tabs.Panel value="source">
          <Group justify="flex-end" mb="xs">
            <CopyButton value={source} label="Copy" />
          </Group>
          <Code language="json" label="The message as JSON" value={source} readOnly />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  )
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <Text component="dt" size="sm" c="dimmed">
        {label}
      </Text>
      <Text component="dd" size="sm" m={0} style={{ overflowWrap: 'anywhere' }}>
        {children}
      </Text>
    </>
  )
}
