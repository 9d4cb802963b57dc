import { Checkbox, Group, NativeSelect, NumberInput, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { ChannelOrder } from '@/shared/ChannelOrder'
import { Code } from '@/shared/Code'
import { TemplateInputs } from '@/shared/TemplateInputs'
import { noValues } from '@/shared/templateValues'
import { useTemplates } from '../templates/useTemplates'
import { digits, list, stepNames, templateFields, templateValues, text, whole, type Fields, type Step } from './model'

export type Set = (part: Fields) => void

export function Field({ label, of, name, set, readOnly, placeholder, description }: { label: string; of: Fields; name: string; set: Set; readOnly: boolean; placeholder?: string; description?: string }) {
  return <TextInput label={label} value={text(of[name])} onChange={(e) => set({ [name]: e.currentTarget.value })} readOnly={readOnly} placeholder={placeholder} description={description} />
}

/** What is sent on a channel: by a step of it alone, or by one of several channels. */
export function MessageFields(message: { channel: string; of: Fields; put: Set; readOnly: boolean }) {
  const { of, put, readOnly } = message
  return (
    <>
      <ContentFields {...message} />
      <Checkbox label="Ignore quiet hours and frequency caps" checked={of.ignore_sending_limits === true} disabled={readOnly} onChange={(e) => put({ ignore_sending_limits: (e.currentTarget.checked || undefined) as never })} />
    </>
  )
}

function ContentFields({ channel, of, put, readOnly }: { channel: string; of: Fields; put: Set; readOnly: boolean }) {
  const templates = useTemplates()
  const field = (label: string, name: string, placeholder?: string, description?: string) => <Field label={label} of={of} name={name} set={put} readOnly={readOnly} placeholder={placeholder} description={description} />
  const area = (label: string, name: string) => <Textarea label={label} autosize minRows={3} value={text(of[name])} onChange={(e) => put({ [name]: e.currentTarget.value })} readOnly={readOnly} />
  const tracked = (label: string) => <Checkbox label={label} description="Counted links are longer." checked={of.track_links === true} disabled={readOnly} onChange={(e) => put({ track_links: e.currentTarget.checked })} />
  switch (channel) {
    case 'email':
      return (
        <>
          <NativeSelect label="Message" value={text(of.template_id)} disabled={readOnly} onChange={(e) => put({ template_id: e.currentTarget.value })} data={[{ value: '', label: 'Custom HTML' }, ...(templates.data ?? []).map((t) => ({ value: t._id, label: `Template ${t.name}` }))]} />
          {field('Subject', 'subject', undefined, text(of.template_id) ? "Instead of the template's." : undefined)}
          {!text(of.template_id) && (
            <div>
              <Text size="sm" fw={500} mb={2}>
                HTML of the message
              </Text>
              <Code language="html" label="HTML of the message" value={text(of.body)} onChange={(body) => put({ body })} readOnly={readOnly} minHeight={160} />
            </div>
          )}
          {field("Sender's name", 'sender_name')}
          {field("Sender's address", 'sender', "The account's default")}
          {field('Reply to', 'reply_to', 'The sender')}
        </>
      )
    case 'whatsapp':
      return (
        <>
          <Field
            label="Template"
            of={of}
            name="template"
            // There is a template or a text.
            set={(f) => put(text(f.template) ? { ...f, text: undefined as never, track_links: undefined as never } : { ...f, language: undefined as never, ...templateFields(noValues) })}
            readOnly={readOnly}
            placeholder="order_shipped"
            description="The name of a template that WhatsApp has approved; with Twilio, its content SID. Left out, a text is sent, only to people who have written within a day."
          />
          {text(of.template) ? (
            <>
              {field('Language', 'language', 'en_US', 'The language of the template.')}
              <TemplateInputs values={templateValues(of)} put={(values) => put(templateFields(values))} readOnly={readOnly} />
            </>
          ) : (
            <>
              {area('Text', 'text')}
              {tracked('Count clicks on links')}
            </>
          )}
        </>
      )
    case 'push':
      return (
        <>
          {field('Title', 'title')}
          {area('Text', 'body')}
          {field('Link', 'link', 'https:// or myapp://', 'What a tap opens: a page, or a place in your app.')}
          {tracked('Count clicks on the link')}
          {field('Picture', 'image', 'https://', "Apple's devices show none.")}
          <NumberInput label="Seconds to keep trying" description="Empty is as long as the push services can." min={0} max={28 * 86_400} value={digits(of.ttl_seconds)} onChange={(v) => put({ ttl_seconds: (whole(String(v)) ?? undefined) as never })} readOnly={readOnly} />
          {field('Replaces', 'collapse', '', 'A name: of messages that have it, a device shows the newest alone.')}
        </>
      )
    case 'in_app':
      return (
        <>
          {field('Title', 'title')}
          {area('Text', 'body')}
          {field('Link', 'link', 'https:// or myapp://', 'What a click opens: a page, or a place in your app.')}
          {field('Picture', 'image', 'https://')}
          <NativeSelect label="Shown" value={text(of.display) || 'inbox'} onChange={(e) => put({ display: e.currentTarget.value === 'inbox' ? (undefined as never) : e.currentTarget.value })} data={[{ value: 'inbox', label: 'In the inbox' }, { value: 'banner', label: 'In the inbox, and as a banner on the page' }, { value: 'modal', label: 'In the inbox, and on top of the page' }]} disabled={readOnly} />
          <NumberInput label="Priority" description="From 0 to 10; higher ones come first." min={0} max={10} value={digits(of.priority)} onChange={(v) => put({ priority: (whole(String(v)) ?? undefined) as never })} readOnly={readOnly} />
          <NumberInput label="Hours in the inbox" description="Empty is 720, which is 30 days." min={1} max={2160} value={digits(of.ttl_hours)} onChange={(v) => put({ ttl_hours: (whole(String(v)) ?? undefined) as never })} readOnly={readOnly} />
        </>
      )
  }
  return (
    <>
      {area('Text', 'text')}
      {tracked('Count clicks on links')}
    </>
  )
}

const channels = ['push', 'in_app', 'whatsapp', 'im', 'sms', 'email']

/** The messages of a step of several channels, in the order of preference. */
export function ChannelFields({ step, put, readOnly }: { step: Step; put: Set; readOnly: boolean }) {
  const messages = list(step.channels) as Fields[]
  const save = (next: Fields[]) => put({ channels: next })
  return (
    <>
      <Text size="xs" c="dimmed">
        Each person gets one message, on the first channel that reaches them. Where it cannot be delivered, the next channel is tried.
      </Text>
      <ChannelOrder messages={messages} channelOf={(m) => text(m.channel)} nameOf={(c) => stepNames[c] ?? c} all={channels} make={(channel): Fields => ({ channel })} save={save} readOnly={readOnly}>
        {(m, i, name, buttons) => {
          const set: Set = (part) => {
            const next: Fields = { ...m, ...part }
            for (const k of Object.keys(part)) if (part[k] === undefined) delete next[k]
            save(messages.map((x, k) => (k === i ? next : x)))
          }
          return (
            <Stack gap="xs" pl="sm" component="section" aria-label={name} data-testid="flow-channel" style={{ borderLeft: '2px solid var(--mantine-color-default-border)' }}>
              <Group justify="space-between" wrap="nowrap">
                <Text size="sm" fw={600}>
                  {i + 1}. {name}
                </Text>
                {buttons}
              </Group>
              <MessageFields channel={text(m.channel)} of={m} put={set} readOnly={readOnly} />
            </Stack>
          )
        }}
      </ChannelOrder>
    </>
  )
}
