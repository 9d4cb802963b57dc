import { ActionIcon, Group, NativeSelect, Paper, SegmentedControl, Stack, Text } from '@mantine/core'
import { Icon } from '@/shared/icons'
import { newChannel, type Form } from './form'
import { channelNamed, channels, type Channel } from './useCampaigns'

/** The channels of a campaign of several, in the order of preference; at is the one whose message is edited below. */
export function ChannelsInput({ form, set, at, setAt, readOnly }: { form: Form; set: (part: Partial<Form>) => void; at: number; setAt: (at: number) => void; readOnly: boolean }) {
  const list = form.channels
  const rest = channels.filter((c) => !list.some((m) => m.channel === c.medium))
  const move = (from: number, to: number) => {
    const next = [...list]
    next.splice(to, 0, ...next.splice(from, 1))
    set({ channels: next })
    setAt(to)
  }
  const remove = (i: number) => {
    set({ channels: list.filter((_, k) => k !== i) })
    setAt(Math.max(0, Math.min(at, list.length - 2)))
  }
  return (
    <Paper withBorder p="sm" mb="sm" component="section" aria-label="Channels">
      <Stack gap={6}>
        <Text size="sm" fw={600}>
          Channels, in the order of preference
        </Text>
        <Text size="xs" c="dimmed">
          Each person gets one message, on the first channel that reaches them.
        </Text>
        {list.map((m, i) => {
          const { name } = channelNamed(m.channel)
          return (
            <Group key={m.channel} gap="xs" justify="space-between" wrap="nowrap" data-testid="channel">
              <Text size="sm">
                {i + 1}. {name}
              </Text>
              {!readOnly && (
                <Group gap={4} wrap="nowrap">
                  <ActionIcon variant="default" size="md" aria-label={`Move ${name} up`} disabled={i === 0} onClick={() => move(i, i - 1)}>
                    <Icon name="arrowUp" size={14} />
                  </ActionIcon>
                  <ActionIcon variant="default" size="md" aria-label={`Move ${name} down`} disabled={i === list.length - 1} onClick={() => move(i, i + 1)}>
                    <Icon name="arrowDown" size={14} />
                  </ActionIcon>
                  <ActionIcon variant="default" size="md" aria-label={`Remove ${name}`} disabled={list.length === 1} onClick={() => remove(i)}>
                    <Icon name="x" size={14} />
                  </ActionIcon>
                </Group>
              )}
            </Group>
          )
        })}
        {rest.length > 0 && !readOnly && (
          <NativeSelect
            size="xs"
            aria-label="Add a channel"
            value=""
            onChange={(e) => {
              set({ channels: [...list, newChannel(e.currentTarget.value as Channel['medium'])] })
              setAt(list.length)
            }}
            data={[{ value: '', label: 'Add a channel' }, ...rest.map((c) => ({ value: c.medium, label: c.name }))]}
          />
        )}
        <SegmentedControl size="xs" aria-label="Message of the channel" value={list[Math.min(at, list.length - 1)]!.channel} onChange={(v) => setAt(list.findIndex((m) => m.channel === v))} data={list.map((m) => ({ value: m.channel, label: channelNamed(m.channel).name }))} />
      </Stack>
    </Paper>
  )
}
