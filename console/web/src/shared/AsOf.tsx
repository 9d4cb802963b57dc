import { Text, Tooltip } from '@mantine/core'
import { instant, short } from './format'

/** The instant that a number is of. Every number of the engine has one. */
export function AsOf({ at }: { at: string }) {
  return (
    <Tooltip label={instant(at)}>
      <Text component="time" dateTime={at} size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
        as of {short(at, Date.now())}
      </Text>
    </Tooltip>
  )
}
