import { ActionIcon, Button, Group, NativeSelect, NumberInput, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { Icon } from './icons'
import { namedLines, namedOf, noPlace, tidy, type TemplateButton, type TemplateLocation, type TemplateValues } from './templateValues'

const headerTypes = [
  { value: '', label: 'A picture if it begins with https://, or else a text' },
  { value: 'text', label: 'A text' },
  { value: 'image', label: 'A picture' },
  { value: 'video', label: 'A video' },
  { value: 'document', label: 'A document' },
  { value: 'location', label: 'A place on a map' },
]

const placeFields: { field: keyof TemplateLocation; label: string; placeholder: string }[] = [
  { field: 'latitude', label: 'Latitude', placeholder: '52.52' },
  { field: 'longitude', label: 'Longitude', placeholder: '13.405' },
  { field: 'name', label: 'Name of the place', placeholder: 'Our shop' },
  { field: 'address', label: 'Address', placeholder: 'Unter den Linden 1, Berlin' },
]

/** The values of a template of WhatsApp. wrong says what is wrong with a field. */
export function TemplateInputs({ values, put, wrong = () => undefined, readOnly }: { values: TemplateValues; put: (values: TemplateValues) => void; wrong?: (field: string) => string | undefined; readOnly: boolean }) {
  // As typed: half a line is no value yet.
  const [lines, setLines] = useState(() => namedLines(values.named_parameters))
  const set = (part: Partial<TemplateValues>) => put(tidy({ ...values, ...part }))
  const named = Object.keys(values.named_parameters).length > 0
  const button = (at: number, part: Partial<TemplateButton>) => set({ buttons: values.buttons.map((b, i) => (i === at ? { ...b, ...part } : b)) })
  const free = Array.from({ length: 10 }, (_, i) => i).find((i) => !values.buttons.some((b) => b.index === i))
  return (
    <>
      {!named && (
        <Textarea label="Parameters" description="The values of the placeholders in the template, one on each line. Merge tags such as {{first_name | there}} are filled in." autosize minRows={2} value={values.parameters.join('\n')} onChange={(e) => set({ parameters: e.currentTarget.value === '' ? [] : e.currentTarget.value.split('\n') })} error={wrong('parameters')} readOnly={readOnly} />
      )}
      <Textarea
        label="Named values"
        description="In place of parameters, where the placeholders have names: one on each line, such as name: {{first_name | there}}."
        autosize
        minRows={1}
        value={lines}
        onChange={(e) => {
          setLines(e.currentTarget.value)
          set({ named_parameters: namedOf(e.currentTarget.value) })
        }}
        error={wrong('named_parameters')}
        readOnly={readOnly}
      />
      {values.header_type !== 'location' && <TextInput label="Header" description="The value of the template's header, or the https address of its picture, video or document." value={values.header} onChange={(e) => set({ header: e.currentTarget.value })} error={wrong('header')} readOnly={readOnly} />}
      <NativeSelect label="The header is" value={values.header_type} onChange={(e) => set({ header_type: e.currentTarget.value as TemplateValues['header_type'] })} data={values.header ? headerTypes : headerTypes.filter((t) => t.value === '' || t.value === 'location')} error={wrong('header_type')} disabled={readOnly} />
      {values.header_type === 'location' &&
        placeFields.map((f) => <TextInput key={f.field} label={f.label} placeholder={f.placeholder} value={values.header_location?.[f.field] ?? ''} onChange={(e) => set({ header_location: { ...(values.header_location ?? noPlace), [f.field]: e.currentTarget.value } })} error={wrong(`header_location.${f.field}`) ?? (f.field === 'latitude' ? wrong('header_location') : undefined)} readOnly={readOnly} />)}
      {values.header && values.header_type === 'document' && <TextInput label="Name of the document" placeholder="Invoice.pdf" value={values.header_filename} onChange={(e) => set({ header_filename: e.currentTarget.value })} error={wrong('header_filename')} readOnly={readOnly} />}
      {values.header && named && <TextInput label="Name of the header's placeholder" description="For a text; with Twilio for a file, too." value={values.header_name} onChange={(e) => set({ header_name: e.currentTarget.value })} error={wrong('header_name')} readOnly={readOnly} />}
      {values.buttons.map((b, i) => (
        <Group key={i} gap="xs" align="flex-end" wrap="nowrap">
          <NativeSelect label="Button" value={b.type} onChange={(e) => button(i, { type: e.currentTarget.value as TemplateButton['type'] })} data={[{ value: 'url', label: 'Opens a page' }, { value: 'quick_reply', label: 'Replies' }, { value: 'copy_code', label: 'Copies a code' }]} disabled={readOnly} />
          <NumberInput label="Place" aria-label={`Place of button ${i + 1}`} w={72} min={1} max={10} allowDecimal={false} value={b.index + 1} onChange={(v) => button(i, { index: Math.max(0, (Number(v) || 1) - 1) })} readOnly={readOnly} />
          <TextInput label={{ url: 'End of the address', quick_reply: 'What it reports', copy_code: 'The code' }[b.type]} flex={1} value={b.value} onChange={(e) => button(i, { value: e.currentTarget.value })} error={wrong(`buttons[${i}]`)} readOnly={readOnly} />
          {!readOnly && (
            <ActionIcon variant="default" size="lg" aria-label={`Remove button ${i + 1}`} onClick={() => set({ buttons: values.buttons.filter((_, k) => k !== i) })}>
              <Icon name="x" size={14} />
            </ActionIcon>
          )}
        </Group>
      ))}
      {!readOnly && free !== undefined && (
        <Group>
          <Button variant="default" size="xs" onClick={() => set({ buttons: [...values.buttons, { type: 'url', index: free, value: '' }] })}>
            Add the value of a button
          </Button>
        </Group>
      )}
    </>
  )
}
