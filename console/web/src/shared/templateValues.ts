/** A button of a template of WhatsApp with its value. */
export interface TemplateButton {
  type: 'url' | 'quick_reply' | 'copy_code'
  /** The place among all buttons of the template, from 0 on. */
  index: number
  value: string
}

/** A place on a map, in degrees. */
export interface TemplateLocation {
  latitude: string
  longitude: string
  name: string
  address: string
}

/** The values of a template of WhatsApp, by their names in the API. */
export interface TemplateValues {
  parameters: string[]
  named_parameters: Record<string, string>
  header: string
  header_type: '' | 'text' | 'image' | 'video' | 'document' | 'location'
  header_name: string
  header_filename: string
  /** The place that a header of the type location shows, null for others. */
  header_location: TemplateLocation | null
  buttons: TemplateButton[]
}

export const noValues: TemplateValues = { parameters: [], named_parameters: {}, header: '', header_type: '', header_name: '', header_filename: '', header_location: null, buttons: [] }

export const noPlace: TemplateLocation = { latitude: '', longitude: '', name: '', address: '' }

/** Named values as lines: name: value. */
export const namedLines = (named: Record<string, string>) => Object.entries(named).map(([name, value]) => `${name}: ${value}`).join('\n')

/** Reads named values from lines. A line without a colon is a name whose value is still to come. */
export function namedOf(lines: string): Record<string, string> {
  const out: Record<string, string> = {}
  for (const line of lines.split('\n')) {
    const [name = '', ...rest] = line.split(':')
    if (name.trim()) out[name.trim()] = rest.join(':').trim()
  }
  return out
}

/** The values with what cannot stand beside them left out: a document alone has a file name, a place stands in the place of a header's value, and nothing is said of a header that is not there. */
export function tidy(v: TemplateValues): TemplateValues {
  const named = Object.keys(v.named_parameters).length > 0
  if (v.header_type === 'location') return { ...v, header: '', header_name: '', header_filename: '', header_location: v.header_location ?? noPlace, parameters: named ? [] : v.parameters }
  const header = v.header ? { header_type: v.header_type, header_name: named ? v.header_name : '', header_filename: v.header_type === 'document' ? v.header_filename : '' } : { header_type: '' as const, header_name: '', header_filename: '' }
  return { ...v, ...header, header_location: null, parameters: named ? [] : v.parameters }
}
