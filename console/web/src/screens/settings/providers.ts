/** A field of the form of a provider. */
export interface Field {
  name: string
  label: string
  description?: string
  kind?: 'secret' | 'long' | 'flag' | 'lines'
  required?: boolean
}

/** A way to set up a provider: its fields, and what the body has beside them. */
export interface Setup {
  label: string
  fields: Field[]
  fixed?: Record<string, unknown>
  /** The body is the JSON that is pasted. */
  json?: string
}

export interface Kind {
  id: string
  label: string
  about: string
  setups: Setup[]
}

const generated: Setup = { label: 'Have a secret made', fields: [], fixed: { generate: true } }
const basic: Setup = {
  label: 'Name and password',
  fields: [
    { name: 'user', label: 'Name', required: true },
    { name: 'password', label: 'Password', description: 'At least 16 characters', kind: 'secret', required: true },
  ],
}
const texts: Setup[] = [
  {
    label: 'Twilio',
    fixed: { preset: 'twilio' },
    fields: [
      { name: 'account_sid', label: 'Account SID', required: true },
      { name: 'auth_token', label: 'Auth token', kind: 'secret', required: true },
      { name: 'from', label: 'From', description: 'A number, a name, or a messaging service that begins with MG', required: true },
    ],
  },
  { label: 'Another provider, as JSON', fields: [], json: '{\n  "url": "https://sms.example.com/send",\n  "token": "…",\n  "format": "json",\n  "body": "{\\"to\\":{{to}},\\"text\\":{{body}}}"\n}' },
]

export const push: Kind[] = [
  { id: 'webpush', label: 'Browsers (Web Push)', about: 'Browsers subscribe with the public key.', setups: [{ label: 'Have a key pair made', fixed: { generate: true }, fields: [{ name: 'subject', label: 'Contact', description: 'mailto: or https:', required: true }] }, { label: 'A key pair of yours', fields: [{ name: 'public_key', label: 'Public key', required: true }, { name: 'private_key', label: 'Private key', kind: 'secret', required: true }, { name: 'subject', label: 'Contact', description: 'mailto: or https:', required: true }] }] },
  { id: 'fcm', label: 'Android (Firebase)', about: 'The key file of a service account, as Firebase gives it.', setups: [{ label: 'Key file', fields: [], json: '' }] },
  { id: 'apns', label: 'Apple (APNs)', about: 'A signing key from Apple’s developer site.', setups: [{ label: 'Signing key', fields: [{ name: 'key_id', label: 'Key ID', required: true }, { name: 'team_id', label: 'Team ID', required: true }, { name: 'topic', label: 'Bundle id of the app', required: true }, { name: 'private_key', label: 'Content of the .p8 file', kind: 'long', required: true }, { name: 'sandbox', label: 'For development builds', kind: 'flag' }] }] },
]

export const messages: Kind[] = [
  { id: 'sms', label: 'SMS', about: 'Where texts to phones go.', setups: texts },
  {
    id: 'whatsapp',
    label: 'WhatsApp',
    about: 'Meta’s cloud, or a provider of yours.',
    setups: [
      { label: 'WhatsApp Cloud', fixed: { preset: 'whatsapp_cloud' }, fields: [{ name: 'version', label: 'Version of the API', description: 'Such as v21.0', required: true }, { name: 'phone_number_id', label: 'Phone number id', required: true }, { name: 'token', label: 'Token', kind: 'secret', required: true }] },
      ...texts,
    ],
  },
  { id: 'im', label: 'Instant messages', about: 'Any provider with an API over HTTP.', setups: [texts[1]!] },
]

export const inbound: Kind[] = [
  { id: 'generic', label: 'Signed calls (Standard Webhooks)', about: 'Any program that reports bounces and complaints.', setups: [generated, { label: 'Secrets of yours', fields: [{ name: 'secrets', label: 'Secrets', description: 'One a line, in base64 behind whsec_', kind: 'lines', required: true }] }] },
  { id: 'mail', label: 'Bounces as mail', about: 'A mail server that hands over bounces and complaints.', setups: [generated, { label: 'A token of yours', fields: [{ name: 'token', label: 'Token', description: 'At least 16 characters', kind: 'secret', required: true }] }] },
  { id: 'mailgun', label: 'Mailgun', about: '', setups: [{ label: 'Signing key', fields: [{ name: 'signing_key', label: 'HTTP webhook signing key', kind: 'secret', required: true }] }] },
  { id: 'postmark', label: 'Postmark', about: '', setups: [generated, basic] },
  { id: 'sendgrid', label: 'SendGrid', about: '', setups: [{ label: 'Verification key', fields: [{ name: 'public_key', label: 'Verification key', required: true }] }] },
  { id: 'ses', label: 'Amazon SES', about: 'By way of SNS topics.', setups: [{ label: 'Topics', fields: [{ name: 'topics', label: 'ARNs of the topics', description: 'One a line', kind: 'lines', required: true }, { name: 'user', label: 'Name of basic authentication' }, { name: 'password', label: 'Its password', description: 'At least 16 characters', kind: 'secret' }, { name: 'secret', label: 'Or a secret, sent as ?secret=', description: 'At least 16 characters', kind: 'secret' }] }] },
]

/** The body of a call that sets a provider up; what was left empty is left out. */
export function bodyOf(setup: Setup, values: Record<string, string | boolean>): Record<string, unknown> {
  const body: Record<string, unknown> = { ...setup.fixed }
  for (const f of setup.fields) {
    const v = values[f.name]
    if (v === undefined || v === '' || v === false) continue
    body[f.name] = f.kind === 'lines' ? String(v).split('\n').map((l) => l.trim()).filter(Boolean) : v
  }
  return body
}
