import { Autocomplete, Box, Checkbox, NativeSelect, NumberInput, SegmentedControl, Stack, Text, Textarea, TextInput, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, data } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { Code } from '@/shared/Code'
import { AnchorLink } from '@/shared/links'
import { TemplateInputs } from '@/shared/TemplateInputs'
import { useTemplates } from '../templates/useTemplates'
import type { Form } from './form'
import { channelOf, type Campaign } from './useCampaigns'

/** Addresses of verified domains that the sender may have. */
export function useSenders() {
  const may = useMay()
  const domains = useQuery({ queryKey: ['sender-domains'], queryFn: () => data(api.GET('/console/api/v1/sender-domains')), enabled: may('settings:read'), staleTime: 60_000 })
  return { known: domains.data !== undefined, addresses: (domains.data ?? []).filter((d) => d.verified).flatMap((d) => [`news@${d.domain}`, `no-reply@${d.domain}`]) }
}

/** The message: who it is from, what it says. wrong is what the server says of a field. */
export function MessageInputs({ campaign, form, set, wrong, readOnly }: { campaign: Campaign; form: Form; set: (part: Partial<Form>) => void; wrong: (field: string) => string | undefined; readOnly: boolean }) {
  const channel = channelOf(campaign)
  const email = channel.html
  const templates = useTemplates()
  const senders = useSenders()
  const own = form.template_id === ''
  return (
    <Stack gap="sm">
      <TextInput label="Name" description="Only your team sees it." value={form.name} onChange={(e) => set({ name: e.currentTarget.value })} maxLength={200} error={wrong('name')} readOnly={readOnly} autoComplete="off" data-1p-ignore />
      {channel.subject && <TextInput label={channel.subject} value={form.subject} onChange={(e) => set({ subject: e.currentTarget.value })} maxLength={998} error={wrong('subject')} readOnly={readOnly} description={own ? undefined : "The template's own subject goes before this one."} />}
      {email && (
        <Group grow align="flex-start" gap="sm">
          <TextInput label="Sender's name" value={form.sender_name} onChange={(e) => set({ sender_name: e.currentTarget.value })} error={wrong('sender_name')} readOnly={readOnly} />
          <Autocomplete label="Sender's address" inputWrapperOrder={['label', 'input', 'error', 'description']} placeholder="The account's default" value={form.sender} onChange={(sender) => set({ sender })} data={senders.addresses} error={wrong('sender')} readOnly={readOnly} description={senders.known && senders.addresses.length === 0 ? 'No domain is verified yet.' : undefined} />
        </Group>
      )}
      {email && <TextInput label="Reply to" placeholder="The sender" value={form.reply_to} onChange={(e) => set({ reply_to: e.currentTarget.value })} error={wrong('reply_to')} readOnly={readOnly} />}
      {email && (
        <Group justify="space-between" align="flex-end" gap="sm">
          <SegmentedControl
            size="xs"
            aria-label="Where the message comes from"
            value={own ? 'own' : 'template'}
            onChange={(v) => set({ template_id: v === 'own' ? '' : (templates.data?.[0]?._id ?? '') })}
            data={[{ value: 'own', label: 'Custom HTML' }, { value: 'template', label: 'Template', disabled: !templates.data?.length }]}
            readOnly={readOnly}
          />
          {!own && (
            <Group gap="xs">
              <NativeSelect size="xs" aria-label="Template" value={form.template_id} onChange={(e) => set({ template_id: e.currentTarget.value })} data={(templates.data ?? []).map((t) => ({ value: t._id, label: t.name }))} disabled={readOnly} />
              <AnchorLink to="/templates/$id" params={{ id: form.template_id }} size="xs">
                Open it
              </AnchorLink>
            </Group>
          )}
        </Group>
      )}
      {channel.medium === 'whatsapp' && <WhatsAppInputs form={form} set={set} wrong={wrong} readOnly={readOnly} />}
      {own &&
        !form.whatsapp.template &&
        (email ? (
          <Box>
            <Code language="html" label="HTML of the message" value={form.body} onChange={(body) => set({ body })} readOnly={readOnly} minHeight={260} />
            {wrong('body') && (
              <Text role="alert" size="xs" c="var(--mantine-color-error)" mt={4}>
                {wrong('body')}
              </Text>
            )}
            <Text size="xs" c="dimmed" mt={4}>
              Merge tags: {'{{first_name | there}}'}, {'{{attributes.plan}}'}, {'{{unsubscribe_url}}'}, {'{{preferences_url}}'}. 
            </Text>
          </Box>
        ) : (
          <Textarea label="Text" autosize minRows={4} maxRows={16} value={form.body} onChange={(e) => set({ body: e.currentTarget.value })} error={wrong('body')} readOnly={readOnly} description="Merge tags such as {{first_name | there}} are filled in." />
        ))}
      {channel.opens && <TextInput label="Opens" placeholder="https://" description="A page, or a place in the app (myapp://sale)." value={form.link} onChange={(e) => set({ link: e.currentTarget.value })} error={wrong('link')} readOnly={readOnly} />}
      {!email && channel.medium !== 'in_app' && !form.whatsapp.template && (
        <Checkbox
          label="Count the clicks on links"
          description={channel.medium === 'push' ? 'Where it opens a page. Places in an app cannot be counted.' : 'Each link takes some 80 characters then, which an SMS is charged for.'}
          checked={form.track_links}
          onChange={(e) => set({ track_links: e.currentTarget.checked })}
          disabled={readOnly}
        />
      )}
      {channel.medium === 'in_app' && <InAppInputs form={form} set={set} wrong={wrong} readOnly={readOnly} />}
      {channel.name === 'Push' && <PushInputs form={form} set={set} wrong={wrong} readOnly={readOnly} />}
    </Stack>
  )
}

/** How an in-app message is shown, and for how long. */
function InAppInputs({ form, set, wrong, readOnly }: { form: Form; set: (part: Partial<Form>) => void; wrong: (field: string) => string | undefined; readOnly: boolean }) {
  const put = (part: Partial<Form['in_app']>) => set({ in_app: { ...form.in_app, ...part } })
  return (
    <>
      <NativeSelect label="Shown" value={form.in_app.display} onChange={(e) => put({ display: e.currentTarget.value as Form['in_app']['display'] })} data={[{ value: 'inbox', label: 'In the inbox' }, { value: 'banner', label: 'In the inbox, and as a banner on the page' }, { value: 'modal', label: 'In the inbox, and on top of the page' }]} error={wrong('in_app.display')} disabled={readOnly} />
      <TextInput label="Picture" placeholder="https://" value={form.in_app.image} onChange={(e) => put({ image: e.currentTarget.value })} error={wrong('in_app.image')} readOnly={readOnly} />
      <Group grow align="flex-start" gap="sm">
        <NumberInput label="Priority" description="Higher ones come first." min={0} max={10} allowDecimal={false} value={form.in_app.priority} onChange={(v) => put({ priority: Number(v) || 0 })} error={wrong('in_app.priority')} readOnly={readOnly} />
        <NumberInput label="Days in the inbox" description="90 at most." min={1} max={90} allowDecimal={false} value={Math.max(1, Math.round(form.in_app.ttl_hours / 24))} onChange={(v) => put({ ttl_hours: (Number(v) || 1) * 24 })} error={wrong('in_app.ttl_hours')} readOnly={readOnly} />
      </Group>
    </>
  )
}

/** What a push message may have beside its texts and its link. */
function PushInputs({ form, set, wrong, readOnly }: { form: Form; set: (part: Partial<Form>) => void; wrong: (field: string) => string | undefined; readOnly: boolean }) {
  const put = (part: Partial<Form['push']>) => set({ push: { ...form.push, ...part } })
  return (
    <>
      <TextInput label="Picture" placeholder="https://" description="Apple's devices show none." value={form.push.image} onChange={(e) => put({ image: e.currentTarget.value })} error={wrong('push.image') ?? wrong('image')} readOnly={readOnly} />
      <Group grow align="flex-start" gap="sm">
        <TextInput label="Replaces earlier ones named" placeholder="none" description="A device shows the newest of a name alone." value={form.push.collapse} onChange={(e) => put({ collapse: e.currentTarget.value })} maxLength={32} error={wrong('push.collapse') ?? wrong('collapse')} readOnly={readOnly} />
        <NumberInput label="Hours to keep trying" placeholder="as long as possible" description="After them an undelivered message is dropped." min={0} max={672} allowDecimal={false} value={form.push.ttl_seconds ? form.push.ttl_seconds / 3600 : ''} onChange={(v) => put({ ttl_seconds: Number(v) * 3600 || 0 })} error={wrong('push.ttl_seconds') ?? wrong('ttl')} readOnly={readOnly} />
      </Group>
    </>
  )
}

/** A template that WhatsApp has approved, in place of a text. */
function WhatsAppInputs({ form, set, wrong, readOnly }: { form: Form; set: (part: Partial<Form>) => void; wrong: (field: string) => string | undefined; readOnly: boolean }) {
  const template = form.whatsapp
  const put = (part: Partial<Form['whatsapp']>) => set({ whatsapp: { ...template, ...part } })
  return (
    <>
      <TextInput
        label="Template"
        description="The name of a template that WhatsApp has approved; with Twilio, its content SID. Without one a text is sent, only to people who wrote within the last 24 hours."
        placeholder="january_sale"
        value={template.template}
        onChange={(e) => put({ template: e.currentTarget.value })}
        error={wrong('whatsapp.template') ?? wrong('whatsapp')}
        readOnly={readOnly}
        autoComplete="off"
        data-1p-ignore
      />
      {template.template && (
        <>
          <TextInput label="Language" placeholder="en_US" description="The language of the template; not with Twilio." value={template.language} onChange={(e) => put({ language: e.currentTarget.value })} error={wrong('whatsapp.language')} readOnly={readOnly} />
          <TemplateInputs values={template} put={put} wrong={(field) => wrong(`whatsapp.${field}`)} readOnly={readOnly} />
        </>
      )}
    </>
  )
}
