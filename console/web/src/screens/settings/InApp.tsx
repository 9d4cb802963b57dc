import { Button, Code, Group, NumberInput, Paper, Stack, TagsInput, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, data, type Schemas } from '@/shared/api/client'
import { useMay } from '@/shared/api/session'
import { CopyButton } from '@/shared/CopyButton'
import { instant } from '@/shared/format'
import { QueryView } from '@/shared/states'
import { SecretOnce } from './SecretOnce'
import { SettingsPage } from './SettingsPage'
import { useAct } from './useAct'

type Settings = Schemas['InAppSettings']

const read = () => data(api.GET('/console/api/v1/in-app/settings'))

/** /settings/in-app: how pages show the in-app messages of signed-in people. */
export function InApp() {
  const may = useMay()
  const settings = useQuery({ queryKey: ['in-app'], queryFn: read, enabled: may('campaigns:read') })
  return (
    <SettingsPage section="/settings/in-app" title="In-app messages">
      <Stack gap="lg">
        <Text size="sm" c="dimmed" maw={620}>
          Pages of your site show the messages of the person who signed in there. Your server says who that is: it signs a token with the secret.
        </Text>
        <QueryView query={settings} what="the settings">
          {(s) => (
            <>
              <Secret settings={s} />
              <Origins key={JSON.stringify(s.allowed_origins)} settings={s} />
              <Snippet settings={s} />
            </>
          )}
        </QueryView>
      </Stack>
    </SettingsPage>
  )
}

function Secret({ settings }: { settings: Settings }) {
  const writes = useMay()('campaigns:write')
  const [hours, setHours] = useState(24)
  const [secret, setSecret] = useState<string>()
  const [act, busy] = useAct('in-app')
  const make = async () => {
    const made = await act('No secret was made', () => data(api.POST('/console/api/v1/in-app/secret', { body: { overlap_hours: hours } })))
    setSecret(made?.secret)
  }
  return (
    <Paper withBorder p="md" component="section" aria-label="Secret">
      <Stack>
        <Title order={3} size="h5">
          Secret
        </Title>
        {settings.secrets.length === 0 && <Text size="sm">There is no secret yet, so no token is valid.</Text>}
        {settings.secrets.map((s) => (
          <Text key={s.created_at} size="sm" data-testid="in-app-secret">
            Made {instant(s.created_at)}
            {s.expires_at && `, valid until ${instant(s.expires_at)}`}
          </Text>
        ))}
        {writes && (
          <Group align="flex-end" gap="sm">
            {settings.secrets.length > 0 && <NumberInput label="Hours that the present secret stays valid" min={0} max={168} allowDecimal={false} value={hours} onChange={(v) => setHours(Number(v) || 0)} />}
            <Button variant="default" onClick={() => void make()} loading={busy}>
              {settings.secrets.length > 0 ? 'Make a new secret' : 'Make the secret'}
            </Button>
          </Group>
        )}
      </Stack>
      <SecretOnce title="The in-app secret" secrets={secret === undefined ? null : [{ label: 'In-app secret', value: secret }]} onClose={() => setSecret(undefined)} />
    </Paper>
  )
}

function Origins({ settings }: { settings: Settings }) {
  const writes = useMay()('campaigns:write')
  const [origins, setOrigins] = useState(settings.allowed_origins)
  const [act, busy] = useAct('in-app')
  return (
    <Paper withBorder p="md" component="section" aria-label="Sites">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void act('The sites were not saved', () => data(api.PUT('/console/api/v1/in-app/settings', { body: { allowed_origins: origins } })), 'The sites are saved.')
        }}
      >
        <Stack>
          <TagsInput label="Sites that show messages" description="Scheme and host, such as https://shop.example; https://*.shop.example for all below, * for all." placeholder={origins.length ? undefined : 'https://'} value={origins} onChange={setOrigins} acceptValueOnBlur maxTags={50} disabled={!writes} maw={520} />
          {writes && (
            <Group>
              <Button type="submit" loading={busy} disabled={JSON.stringify(origins) === JSON.stringify(settings.allowed_origins)}>
                Save
              </Button>
            </Group>
          )}
        </Stack>
      </form>
    </Paper>
  )
}

function Snippet({ settings }: { settings: Settings }) {
  const html = `<div id="inbox"></div>\n<script defer src="${settings.script_url}"></script>\n<script defer src="/inbox.js"></script>`
  const js = `MusterInApp.start({\n  token: async () => {\n    const r = await fetch('/muster-token') // of the signed-in person\n    if (!r.ok) throw new Error('no token: ' + r.status)\n    return r.text()\n  },\n  inbox: '#inbox',\n})`
  const server = `jwt.sign({ iss: '${settings.issuer}', sub: user.externalId }, process.env.MUSTER_IN_APP_SECRET, { algorithm: 'HS256', expiresIn: '1h' })`
  return (
    <Stack component="section" aria-label="Code">
      {[
        ['On the page', html],
        ['In /inbox.js of your site', js],
        ['On your server, such as with jsonwebtoken for Node.js', server],
      ].map(([title, text]) => (
        <div key={title}>
          <Group justify="space-between" mb={4}>
            <Text size="sm" fw={600}>
              {title}
            </Text>
            <CopyButton value={text!} label="Copy" />
          </Group>
          <Code block aria-label={title} tabIndex={0} style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>
            {text}
          </Code>
        </div>
      ))}
    </Stack>
  )
}
