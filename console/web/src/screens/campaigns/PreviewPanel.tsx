import { Alert, Badge, Button, Group, Paper, Stack, TagsInput, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay, useSession } from '@/shared/api/session'
import { Captured, useCaptured } from '@/shared/captured'
import { Icon } from '@/shared/icons'
import { MessageFrame } from '@/shared/MessageFrame'
import { PersonPicker } from '@/shared/PersonPicker'
import { contentOf, partOf, type Form } from './form'
import { channelOf, type Campaign } from './useCampaigns'

/** The message as it stands, for a real person, whether it is saved or not. */
export function useRendered(campaign: Campaign, form: Form, at: number, person: string | undefined) {
  const content = useMemo(() => JSON.stringify({ ...contentOf(form, campaign, at), ...(form.sender && { sender: form.sender }) }), [form, campaign, at])
  const [shown] = useDebouncedValue(content, 200)
  return useQuery({
    queryKey: ['campaign', campaign._id, 'render', person, shown],
    queryFn: ({ signal }) => data(api.POST('/console/api/v1/campaigns/{id}/render', { params: { path: { id: campaign._id } }, body: { profile_id: person!, ...(JSON.parse(shown) as object) }, signal })),
    enabled: person !== undefined,
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 30_000,
  })
}

/** at is the place of the channel that is shown of a campaign of several. */
export function PreviewPanel({ campaign, form, at, person, onPerson, rendered }: { campaign: Campaign; form: Form; at: number; person: string | undefined; onPerson: (id: string) => void; rendered: ReturnType<typeof useRendered> }) {
  const channel = channelOf(partOf(campaign, form, at).campaign)
  const email = channel.html
  const m = rendered.data
  const inApp = channel.medium === 'in_app'
  const title = m && (channel.subject || m.subject) && (
    <Text fw={600} data-testid="preview-subject" style={{ overflowWrap: 'anywhere' }}>
      {m.subject || 'without a subject'}
    </Text>
  )
  return (
    <Paper withBorder p="md" miw={0} component="section" aria-label="Preview">
      <Stack gap="sm">
        <PersonPicker label="Shown for" value={person} onChange={onPerson} segment={form.segment_ids[0]} />
        {m?.skipped && (
          <Alert color="yellow" variant="light" p="xs" icon={<Icon name="alert" />}>
            <Text size="xs">{form.channels.length > 0 ? 'It would not go to this person on this channel' : 'It would not be sent to this person'}: {m.skipped}.</Text>
          </Alert>
        )}
        {m ? (
          <>
            <div>
              {email && (
                <Text size="xs" c="dimmed">
                  From {[m.sender_name, m.sender && `<${m.sender}>`].filter(Boolean).join(' ') || 'nobody: no sender domain is verified'}
                </Text>
              )}
              {!inApp && title}
            </div>
            {email ? (
              <MessageFrame html={m.html} title="The message" />
            ) : (
              <Paper withBorder p="sm" radius="lg" maw={320}>
                {inApp && <InAppPicture form={partOf(campaign, form, at).form} />}
                {inApp && title}
                <Text size="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }} data-testid="preview-text">
                  {m.text}
                </Text>
                {m.link && (
                  <Text size="xs" c="dimmed" mt={4}>
                    {m.link}
                  </Text>
                )}
              </Paper>
            )}
            {m.segments != null && (
              <Text size="xs" c="dimmed" data-testid="preview-segments">
                {`${m.segments} SMS for this person, in ${m.encoding}${m.encoding === 'UCS-2' ? ': a character outside of GSM-7 makes each hold 70 instead of 160' : ''}.`}
              </Text>
            )}
          </>
        ) : (
          !rendered.isError && (
            <Text size="sm" c="dimmed">
              {person ? 'The message is being rendered.' : 'There is nobody yet to show it for. Send an event or add a contact.'}
            </Text>
          )
        )}
        <TestSend campaign={campaign} form={form} at={at} person={person} />
      </Stack>
    </Paper>
  )
}

/** The picture of an in-app message. */
function InAppPicture({ form }: { form: Form }) {
  return form.in_app.image ? (
    <Text size="xs" c="dimmed" mb={4} style={{ overflowWrap: 'anywhere' }}>
      Picture: {form.in_app.image}
    </Text>
  ) : null
}

/** Sends the message as it stands to a few addresses. */
function TestSend({ campaign, form, at, person }: { campaign: Campaign; form: Form; at: number; person: string | undefined }) {
  const session = useSession()
  const may = useMay()
  const channel = channelOf(partOf(campaign, form, at).campaign)
  const [to, setTo] = useState<string[] | null>(null)
  const addresses = to ?? (channel.html && session.data?.email ? [session.data.email] : [])
  const captured = useCaptured(channel.medium)
  const send = useMutation({
    mutationFn: () =>
      data(api.POST('/console/api/v1/campaigns/{id}/test-send', { params: { path: { id: campaign._id } }, body: { ...contentOf(form, campaign, at), ...(form.sender && { sender: form.sender }), ...(form.reply_to && { reply_to: form.reply_to }), to: addresses, ...(person && { profile_id: person }) } })),
  })
  const result = useRef<HTMLDivElement>(null)
  const { submittedAt, isPending, isIdle } = send
  useEffect(() => {
    if (!isPending && !isIdle) result.current?.scrollIntoView({ block: 'nearest' })
  }, [submittedAt, isPending, isIdle])
  if (channel.opens || !may('campaigns:write')) return null
  return (
    <Stack gap={6}>
      <TagsInput size="xs" label="Send a test to" description="Five addresses at most. Nothing is counted, and nothing is saved." placeholder={addresses.length ? undefined : channel.html ? 'ann@example.com' : '+49 170 1234567'} value={addresses} onChange={setTo} maxTags={5} acceptValueOnBlur />
      <Group gap="sm" align="flex-start">
        <Button size="xs" variant="default" leftSection={<Icon name="send" size={14} />} onClick={() => send.mutate()} loading={send.isPending} disabled={addresses.length === 0}>
          Send a test
        </Button>
        <Stack gap={2} flex="1 1 180px" miw={0} ref={result} role="status" aria-label="Result of the test" style={{ scrollMargin: 16 }}>
          {send.data?.results.map((r) => (
            <Group key={r.to} gap={6} wrap="nowrap">
              <Badge size="xs" variant="light" color={r.status === 'sent' ? 'teal' : 'red'} c="var(--mantine-color-text)" style={{ flex: 'none' }}>
                {captured && r.status === 'sent' ? 'kept' : r.status}
              </Badge>
              <Text size="xs" style={{ overflowWrap: 'anywhere' }}>
                {r.to}
                {r.reason && `: ${r.reason}`}
              </Text>
            </Group>
          ))}
          {send.isError && (
            <Text size="xs" c="var(--mantine-color-error)">
              {messageOf(send.error)}
            </Text>
          )}
        </Stack>
      </Group>
      <Captured channel={channel.medium} />
    </Stack>
  )
}
