import { Alert, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, data } from './api/client'
import { useMay } from './api/session'
import { Icon } from './icons'
import { AnchorLink } from './links'
import { ScreenLink } from './ScreenLink'

const names = { email: 'E-mails', sms: 'SMS', whatsapp: 'WhatsApp messages', im: 'Instant messages', in_app: 'In-app messages', push: 'Push messages' }

export type CapturedChannel = keyof typeof names

/** The channels whose messages the server keeps and does not send. */
export function useCapturedChannels(): readonly string[] {
  const { data: channels } = useQuery({ queryKey: ['captured'], queryFn: async () => (await data(api.GET('/console/api/v1/session'))).captured_channels, staleTime: 5000 })
  return channels ?? none
}

const none: readonly string[] = []

/** Whether the server keeps the messages of a channel and does not send them. */
export const useCaptured = (channel: CapturedChannel) => useCapturedChannels().includes(channel)

/** Says that "sent" means kept here, and what to do to send; nothing where messages are sent. */
export function Captured({ channel, children }: { channel: CapturedChannel; children?: string }) {
  const captured = useCaptured(channel)
  const may = useMay()
  if (!captured) return null
  return (
    <Alert color="yellow" variant="light" p="xs" icon={<Icon name="alert" />} role="note" data-testid="captured">
      <Text size="xs" component="div">
        {children ?? `${names[channel]} are not sent: the server keeps them.`}{' '}
        {channel === 'email' ? (
          <>
            It has no mail relay; start it with <code>--smtp</code> to send.
          </>
        ) : (
          <>
            Set up a provider in the{' '}
            <ScreenLink to="/settings/providers" size="xs">
              settings
            </ScreenLink>{' '}
            to send.
          </>
        )}{' '}
        {may('campaigns:read') && (
          <AnchorLink to="/unsent" search={{ channel }} target="_blank" size="xs">
            See the unsent messages
          </AnchorLink>
        )}
      </Text>
    </Alert>
  )
}
