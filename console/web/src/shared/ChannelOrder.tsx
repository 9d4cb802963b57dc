import { ActionIcon, Group, NativeSelect } from '@mantine/core'
import { Fragment, type ReactNode } from 'react'
import { Icon } from './icons'

/** Messages for several channels, one each. */
interface Order<T> {
  messages: T[]
  channelOf: (message: T) => string
  nameOf: (channel: string) => string
  /** The channels that may be added, in the order in which they are offered. */
  all: string[]
  make: (channel: string) => T
  /** Takes the new order; at is the place of the message that was moved or added, null where one was removed. */
  save: (next: T[], at: number | null) => void
  /** The last message cannot be removed. */
  keepsOne?: boolean
  readOnly: boolean
  /** Shows a message. The buttons move and remove it. */
  children: (message: T, at: number, name: string, buttons: ReactNode) => ReactNode
}

/** The messages of several channels in the order of preference, which people change. */
export function ChannelOrder<T>({ messages, channelOf, nameOf, all, make, save, keepsOne = false, readOnly, children }: Order<T>) {
  const rest = all.filter((c) => !messages.some((m) => channelOf(m) === c))
  const move = (from: number, to: number) => {
    const next = [...messages]
    next.splice(to, 0, ...next.splice(from, 1))
    save(next, to)
  }
  return (
    <>
      {messages.map((m, i) => {
        const name = nameOf(channelOf(m))
        const buttons = !readOnly && (
          <Group gap={4} wrap="nowrap">
            <ActionIcon variant="default" size="md" aria-label={`Move ${name} up`} disabled={i === 0} onClick={() => move(i, i - 1)}>
              <Icon name="arrowUp" size={14} />
            </ActionIcon>
            <ActionIcon variant="default" size="md" aria-label={`Move ${name} down`} disabled={i === messages.length - 1} onClick={() => move(i, i + 1)}>
              <Icon name="arrowDown" size={14} />
            </ActionIcon>
            <ActionIcon
              variant="default"
              size="md"
              aria-label={`Remove ${name}`}
              disabled={keepsOne && messages.length === 1}
              onClick={() =>
                save(
                  messages.filter((_, k) => k !== i),
                  null,
                )
              }
            >
              <Icon name="x" size={14} />
            </ActionIcon>
          </Group>
        )
        return <Fragment key={channelOf(m) || i}>{children(m, i, name, buttons)}</Fragment>
      })}
      {rest.length > 0 && !readOnly && (
        <NativeSelect
          size="xs"
          aria-label="Add a channel"
          value=""
          onChange={(e) => save([...messages, make(e.currentTarget.value)], messages.length)}
          data={[{ value: '', label: 'Add a channel' }, ...rest.map((c) => ({ value: c, label: nameOf(c) }))]}
        />
      )}
    </>
  )
}
