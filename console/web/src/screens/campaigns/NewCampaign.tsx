import { Alert, Button, Group, NativeSelect, Paper, Stack, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { Page } from '@/shared/Page'
import { NoPermission, QueryView } from '@/shared/states'
import { formOf, savedFields } from './form'
import { campaignQuery, channelOf, channels, severalChannels, type Campaign } from './useCampaigns'

const route = getRouteApi('/shell/campaigns/new')
/** The channels of a new campaign of several, to be changed. */
const several = [{ channel: 'push' as const }, { channel: 'sms' as const }, { channel: 'email' as const }]
const begin = '<p>Hello {{first_name | there}},</p>\n<p></p>\n<p><a href="{{unsubscribe_url}}">Unsubscribe</a></p>\n'

/** /campaigns/new: a campaign begins as a draft with a name, or as a copy. */
export function NewCampaign() {
  const { copy } = route.useSearch()
  const may = useMay()
  const from = useQuery({ ...campaignQuery(copy ?? ''), enabled: copy !== undefined })
  if (!may('campaigns:write')) return <NoPermission permission="campaigns:write" />
  if (!copy) return <Form />
  return (
    <QueryView query={from} what="the campaign">
      {(c) => <Form from={c} />}
    </QueryView>
  )
}

function Form({ from }: { from?: Campaign }) {
  const { template } = route.useSearch()
  const [name, setName] = useState(from ? `Copy of ${from.name}` : '')
  const [medium, setMedium] = useState<string>(from ? (from.channels.length > 0 ? 'several' : channelOf(from).medium) : 'email')
  const navigate = useNavigate()
  const client = useQueryClient()
  const create = useMutation({
    mutationFn: () => {
      const channel = channels.find((c) => c.medium === medium)
      const texts = from
        ? { subject: from.subject, body: from.body, sender: from.sender, sender_name: from.sender_name, reply_to: from.reply_to, list_id: from.list_id, segment_ids: from.segment_ids, ...(from.link && { link: from.link }), ...(from.template_id && { template_id: from.template_id }), ...(from.whatsapp && { whatsapp: from.whatsapp }), ...(from.push && { push: from.push }), ...(from.in_app && { in_app: from.in_app }), track_links: from.track_links }
        : template
          ? { template_id: template }
          : { body: !channel || channel.html ? begin : '' }
      if (!channel) return data(api.POST('/console/api/v1/campaigns', { body: { name: name.trim(), channel: 1, channels: from ? savedFields(formOf(from)).channels : several, ...texts } }))
      // A date in the past schedules nothing; campaigns of one channel must have one.
      return data(api.POST('/console/api/v1/campaigns', { body: { name: name.trim(), channel: 2, type: channel.type, service: channel.service, date: '1970-01-01T00:00:00Z', ...texts } }))
    },
    onSuccess: async (c) => {
      await client.invalidateQueries({ queryKey: ['campaigns'] })
      await navigate({ to: '/campaigns/$id/edit', params: { id: c._id } })
    },
  })
  return (
    <Page title="New campaign">
      <Paper withBorder p="md" maw={520}>
        <form
          onSubmit={(e) => {
            e.preventDefault()
            if (name.trim()) create.mutate()
          }}
        >
          <Stack>
            <TextInput label="Name" description="Only your team sees it." value={name} onChange={(e) => setName(e.currentTarget.value)} maxLength={200} autoComplete="off" data-1p-ignore data-autofocus />
            <NativeSelect label="Channel" value={medium} onChange={(e) => setMedium(e.currentTarget.value)} data={[...channels.map((c) => ({ value: c.medium as string, label: c.name })), { value: 'several', label: severalChannels }]} description={medium === 'several' ? 'Each person gets one message, on the first channel that reaches them.' : undefined} disabled={from !== undefined} />
            {create.isError && (
              <Alert role="alert" color="red" variant="light">
                {messageOf(create.error)}
              </Alert>
            )}
            <Group justify="flex-end">
              <Button type="submit" disabled={!name.trim()} loading={create.isPending}>
                Create a draft
              </Button>
            </Group>
          </Stack>
        </form>
      </Paper>
    </Page>
  )
}
