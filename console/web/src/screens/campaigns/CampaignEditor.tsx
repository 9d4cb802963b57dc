import { Alert, Box, Button, Group, Paper, Tabs, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useBlocker } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { api, data } from '@/shared/api/client'
import { ApiError, messageOf } from '@/shared/api/errors'
import { useMay } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { useCapturedChannels } from '@/shared/captured'
import { count, instant } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink, ButtonLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { useSomebody } from '@/shared/PersonPicker'
import { QueryView } from '@/shared/states'
import { AudienceInputs, AudienceNumbers, useAudience } from './AudienceInputs'
import { ChannelsInput } from './ChannelsInput'
import { formOf, lacks, partOf, savedFields, type Form } from './form'
import { MessageInputs } from './MessageInputs'
import { PreviewPanel, useRendered } from './PreviewPanel'
import { SendStep, type Start } from './SendStep'
import { StatusBadge } from './StatusBadge'
import { campaignQuery, channelNamed, channelOf, type Campaign } from './useCampaigns'

const route = getRouteApi('/shell/campaigns/$id/edit')

/** /campaigns/$id/edit */
export function EditCampaign() {
  const { id } = route.useParams()
  const campaign = useQuery({ ...campaignQuery(id), refetchOnWindowFocus: false })
  return (
    <QueryView query={campaign} what="the campaign">
      {(c) => <Editor key={c._id} campaign={c} />}
    </QueryView>
  )
}

const fields = ['name', 'subject', 'body', 'sender', 'sender_name', 'reply_to', 'link', 'whatsapp', 'whatsapp.template', 'whatsapp.language', 'whatsapp.parameters', 'whatsapp.named_parameters', 'whatsapp.header', 'whatsapp.header_type', 'whatsapp.header_name', 'whatsapp.header_filename', 'whatsapp.header_location', 'whatsapp.header_location.latitude', 'whatsapp.header_location.longitude', 'whatsapp.header_location.name', 'whatsapp.header_location.address', 'push.image', 'push.collapse', 'push.ttl_seconds', 'in_app.display', 'in_app.image', 'in_app.priority', 'in_app.ttl_hours', 'image', 'collapse', 'ttl']

/** Names the channel of a fault as the editor does. */
const inChannel = (message: string, form: Form) => message.replace(/channels\[(\d+)\]\./, (whole, i: string) => (form.channels[Number(i)] ? `${channelNamed(form.channels[Number(i)]!.channel).name}: ` : whole))

function Editor({ campaign }: { campaign: Campaign }) {
  const { step = 'message', person } = route.useSearch()
  const navigate = route.useNavigate()
  const client = useQueryClient()
  const confirm = useConfirm()
  const may = useMay()
  const writes = may('campaigns:write')
  const [form, setForm] = useState(() => formOf(campaign))
  const [everybody, setEverybody] = useState(false)
  const leaving = useRef(false)
  const set = (part: Partial<typeof form>) => setForm((f) => ({ ...f, ...part }))
  // The channel whose message is edited and shown, of a campaign of several.
  const [at, setAt] = useState(0)
  const part = partOf(campaign, form, Math.min(at, form.channels.length - 1))
  const changed = JSON.stringify(savedFields(form)) !== JSON.stringify(savedFields(formOf(campaign)))
  const running = campaign.status === 'sending' || campaign.status === 'testing' || campaign.status === 'waiting'
  const kept = useCapturedChannels()
  const media: string[] = campaign.channels.length > 0 ? campaign.channels.map((m) => m.channel) : [channelOf(campaign).medium]
  const captured = media.every((m) => kept.includes(m))
  // What was sent is shown as it was, until somebody means to send it again.
  const [again, setAgain] = useState(false)
  const sent = campaign.status === 'sent' && !again
  const readOnly = !writes || running || sent

  const somebody = useSomebody({ channel: channelOf(campaign).medium, segments: form.segment_ids, lists: form.list_id })
  const whom = person ?? somebody
  const rendered = useRendered(campaign, form, at, whom)
  const audience = useAudience(campaign, form, everybody)
  // Consents and segments may have changed since the last look at the numbers.
  useEffect(() => {
    if (step !== 'message') void client.invalidateQueries({ queryKey: ['campaign', campaign._id, 'audience'] })
  }, [client, campaign._id, step])
  const known = everybody || form.list_id.length + form.segment_ids.length > 0 ? audience.data : undefined

  const keep = (c: Campaign) => {
    client.setQueryData(['campaign', c._id], c)
    setForm(formOf(c))
    void client.invalidateQueries({ queryKey: ['campaigns'] })
  }
  const patch = (more: object = {}) => data(api.PATCH('/console/api/v1/campaigns/{id}', { params: { path: { id: campaign._id } }, body: { ...savedFields(form), ...more } }))
  const save = useMutation({
    mutationFn: () => patch(),
    onSuccess: (c) => {
      keep(c)
      notifications.show({ message: `${c.name} is saved.` })
    },
  })
  const start = useMutation({
    mutationFn: async (s: Start) => {
      const id = campaign._id
      if (s.how === 'later') {
        const c = await patch({ date: s.at, local_time: s.local })
        keep(c)
        if (!c.scheduled_at) throw new Error('It was saved, but not scheduled: the time is over or there is no audience.')
        notifications.show({ title: `${c.name} is scheduled`, message: `${s.local ? 'It begins' : 'It is sent'} on ${instant(c.scheduled_at)}.` })
        return false
      }
      if (changed) keep(await patch())
      const audienceOf = everybody ? { all_contacts: true } : {}
      if (s.how === 'test')
        await data(api.POST('/console/api/v1/campaigns/{id}/ab-test/start', { params: { path: { id } }, body: { variants: s.test.subjects.map((subject) => ({ subject })), test_percent: s.test.test_percent, metric: s.test.metric, wait_seconds: s.test.wait_seconds, ...audienceOf } }))
      else await begun(id, audienceOf)
      return true
    },
    onSuccess: async (started) => {
      if (!started) return
      leaving.current = true
      await client.invalidateQueries({ queryKey: ['campaigns'] })
      await client.invalidateQueries({ queryKey: ['campaign', campaign._id] })
      await navigate({ to: '/campaigns/$id', params: { id: campaign._id }, search: {} })
    },
  })
  const unschedule = useMutation({
    mutationFn: () => data(api.DELETE('/console/api/v1/campaigns/{id}/schedule', { params: { path: { id: campaign._id } } })),
    onSuccess: (c) => {
      keep(c)
      notifications.show({ message: 'The schedule is cancelled. It is not sent by itself.' })
    },
  })
  useBlocker({ shouldBlockFn: ({ current, next }) => changed && !leaving.current && current.pathname !== next.pathname && !window.confirm('Leave without saving? What you changed is lost.'), enableBeforeUnload: false })

  const ask = async (s: Start) => {
    const n = known?.reachable ?? 0
    const people = `${count(n)} ${n === 1 ? 'person' : 'people'}`
    const question =
      s.how === 'later'
        ? { title: `Schedule ${form.name.trim()}?`, yes: 'Schedule', body: `It is sent ${s.local ? `when each person's clocks show ${s.at.replace('T', ' ')}` : `on ${instant(s.at)}`} to whoever belongs to the audience then; now that is ${people}.` }
        : s.how === 'test'
          ? { title: `Start the A/B test of ${form.name.trim()}?`, yes: 'Start the test', body: `${s.test.subjects.length} subjects go to ${s.test.test_percent} % of the audience now, and the best one later to the rest: ${people} in all. Sent messages cannot be taken back.` }
          : { title: `Send ${form.name.trim()} to ${people}?`, yes: `Send to ${count(n)}`, body: 'Sending begins at once. Sent messages cannot be taken back.' }
    // With no relay or provider "sent" would promise too much.
    if (captured) question.body = s.how === 'later' ? `${question.body} As the server is set up now, the messages are kept there and reach nobody.` : 'The messages are kept by the server and reach nobody, but count as sent, and each person gets the campaign once.'
    if (await confirm(question)) start.mutate(s)
  }

  const failure = save.error ?? start.error ?? (rendered.error as Error | null)
  // Of a list and of buttons the input as a whole shows the fault.
  const field = (failure instanceof ApiError ? failure.field : '').replace(/^(whatsapp\.(?:parameters|named_parameters|buttons\[\d+\])).*/, '$1')
  const wrong = (name: string) => (field === name && failure ? messageOf(failure) : undefined)
  const elsewhere = failure && !fields.includes(field) && !field.startsWith('whatsapp.buttons[') ? inChannel(messageOf(failure), form) : ''
  return (
    <Page
      title={campaign.name}
      aside={
        <>
          <StatusBadge status={campaign.status} /> {changed ? 'not saved yet' : ''}
        </>
      }
      wide
      actions={
        <>
          {campaign.status !== 'draft' && (
            <ButtonLink to="/campaigns/$id" params={{ id: campaign._id }} variant="default" leftSection={<Icon name="chart" size={14} />}>
              Results
            </ButtonLink>
          )}
          {!sent && (
            <Button variant={step === 'send' ? 'default' : 'filled'} onClick={() => save.mutate()} loading={save.isPending} disabled={readOnly || !changed || !form.name.trim()}>
              Save
            </Button>
          )}
        </>
      }
    >
      {running && (
        <Alert color="cyan" variant="light" mb="sm" icon={<Icon name="send" />}>
          It is being sent and cannot be changed meanwhile.
        </Alert>
      )}
      {sent && (
        <Alert color="cyan" variant="light" mb="sm" icon={<Icon name="lock" />} title="This campaign was sent" role="note">
          <Group justify="space-between" gap="sm">
            <Text size="sm" flex="1 1 320px">
              Here are its message and audience. To send something like it, duplicate it. To send it to people who came to the audience later, open it again: nobody gets it twice.
            </Text>
            {writes && (
              <Group gap="xs">
                <ButtonLink to="/campaigns/new" search={{ copy: campaign._id }} size="xs" variant="default" leftSection={<Icon name="copy" size={14} />}>
                  Duplicate
                </ButtonLink>
                <Button size="xs" variant="default" onClick={() => setAgain(true)}>
                  Open it again
                </Button>
              </Group>
            )}
          </Group>
        </Alert>
      )}
      <Box className="halves">
        <Paper withBorder miw={0} className={readOnly ? 'locked' : undefined}>
          <Tabs value={step} onChange={(v) => void navigate({ search: (s) => ({ ...s, step: v as typeof step }), replace: true })} keepMounted={false}>
            <Tabs.List grow>
              <Tabs.Tab value="message">1. Message</Tabs.Tab>
              <Tabs.Tab value="audience">2. Audience</Tabs.Tab>
              <Tabs.Tab value="send">3. Send</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="message" p="md">
              {form.channels.length > 0 && <ChannelsInput form={form} set={set} at={at} setAt={setAt} readOnly={readOnly} />}
              <MessageInputs campaign={part.campaign} form={part.form} set={(p) => set(part.set(p))} wrong={wrong} readOnly={readOnly} />
            </Tabs.Panel>
            <Tabs.Panel value="audience" p="md">
              <AudienceInputs form={form} set={set} everybody={everybody} setEverybody={setEverybody} audience={audience} readOnly={readOnly} />
            </Tabs.Panel>
            <Tabs.Panel value="send" p="md">
              {!sent && (known || audience.isError) && (
                <Box mb="md">
                  <AudienceNumbers audience={audience} />
                </Box>
              )}
              {sent ? (
                <Text size="sm" c="dimmed">
                  It was sent. <AnchorLink to="/campaigns/$id" params={{ id: campaign._id }} size="sm">Its results</AnchorLink> say to whom, and what they did.
                </Text>
              ) : (
                <SendStep campaign={campaign} form={form} set={set}  subject={form.subject} everybody={everybody} audience={known} missing={running ? 'It is being sent.' : lacks(form, campaign)} pending={start.isPending} error={start.error ? messageOf(start.error) : ''} onStart={(s) => void ask(s)} onUnschedule={() => unschedule.mutate()} may={writes} />
              )}
            </Tabs.Panel>
          </Tabs>
          {elsewhere && !start.error && (
            <Text role="alert" size="sm" c="var(--mantine-color-error)" px="md" pb="md">
              {elsewhere}
            </Text>
          )}
        </Paper>
        <PreviewPanel campaign={campaign} form={form} at={at} person={whom} onPerson={(p) => void navigate({ search: (s) => ({ ...s, person: p }), replace: true })} rendered={rendered} />
      </Box>
    </Page>
  )
}

const patience = 120_000 // milliseconds until a send must have begun

/**
 * Begins a send. The call answers when all is sent, which may take hours; so it is left
 * as soon as the numbers say that it began. A refusal is thrown.
 */
async function begun(id: string, body: object) {
  const path = { params: { path: { id } } }
  const before = (await data(api.GET('/console/api/v1/campaigns/{id}/stats', path))).runs.length
  const leave = new AbortController()
  let over = false
  const answered = data(api.POST('/console/api/v1/campaigns/{id}/send', { ...path, body, signal: leave.signal })).finally(() => (over = true))
  const seen = (async () => {
    for (const end = Date.now() + patience; !over && Date.now() < end; ) {
      const stats = await data(api.GET('/console/api/v1/campaigns/{id}/stats', path))
      if (stats.runs.length > before) return
      await new Promise((go) => setTimeout(go, 200))
    }
    await answered
  })()
  await Promise.race([answered, seen])
  answered.catch(() => {})
  seen.catch(() => {})
  leave.abort()
}
