import { Group, Paper, SegmentedControl, Stack, Text } from '@mantine/core'
import { ChannelOrder } from '@/shared/ChannelOrder'
import { newChannel, type Form } from './form'
import { channelNamed, channels, type Channel } from './useCampaigns'

/** The channels of a campaign of several, in the order of preference; at is the one whose message is edited below. */
export function ChannelsInput({ form, set, at, setAt, readOnly }: { form: Form; set: (part: Partial<Form>) => void; at: number; setAt: (at: number) => void; readOnly: boolean }) {
  const list = form.channels
  return (
    <Paper withBorder p="sm" mb="sm" component="section" aria-label="Channels">
      <Stack gap={6}>
        <Text size="sm" fw={600}>
          Channels, in the order of preference
        </Text>
        <Text size="xs" c="dimmed">
          Each person gets one message, on the first channel that reaches them.
        </Text>
        <ChannelOrder
          messages={list}
          channelOf={(m) => m.channel}
          nameOf={(c) => channelNamed(c).name}
          all={channels.map((c) => c.medium)}
          make={(c) => newChannel(c as Channel['medium'])}
          save={(next, to) => {
            set({ channels: next })
            setAt(to ?? Math.max(0, Math.min(at, next.length - 1)))
          }}
          keepsOne
          readOnly={readOnly}
        >
          {(_, i, name, buttons) => (
            <Group gap="xs" justify="space-between" wrap="nowrap" data-testid="channel">
              <Text size="sm">
                {i + 1}. {name}
              </Text>
              {buttons}
            </Group>
          )}
        </ChannelOrder>
        <SegmentedControl size="xs" aria-label="Message of the channel" value={list[Math.min(at, list.length - 1)]!.channel} onChange={(v) => setAt(list.findIndex((m) => m.channel === v))} data={list.map((m) => ({ value: m.channel, label: channelNamed(m.channel).name }))} />
      </Stack>
    </Paper>
  )
}
