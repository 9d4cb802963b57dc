import { Alert, Box, Button, Code, Group, Stack, Tabs, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api, data } from '@/shared/api/client'
import { messageOf } from '@/shared/api/errors'
import { useMay, type Session } from '@/shared/api/session'
import { useConfirm } from '@/shared/confirm'
import { CopyButton } from '@/shared/CopyButton'
import { languages, snippet, type Language } from './snippets'

const route = getRouteApi('/shell/home')

/** The first call in several languages, with the ids of the account. */
export function Snippets({ session }: { session: Session }) {
  const { code = 'curl' } = route.useSearch()
  const navigate = route.useNavigate()
  const may = useMay()
  const confirm = useConfirm()
  const fresh = useMutation({ mutationFn: () => data(api.POST('/console/api/v1/app-secret')) })
  const secret = fresh.data?.app_secret ?? ''
  const account = { origin: window.location.origin, appId: session.app_id, secret }
  const make = async () => {
    if (await confirm({ title: 'Make a new App Secret?', body: 'Programs that send events with the old one are refused from then on. The App ID stays.', yes: 'Make a new one', danger: true })) fresh.mutate()
  }
  return (
    <Stack gap="xs">
      <Tabs value={code} onChange={(v) => void navigate({ search: (s) => ({ ...s, code: v as Language }), replace: true })} keepMounted={false}>
        <Tabs.List style={{ flexWrap: 'nowrap', overflowX: 'auto', overflowY: 'hidden' }} aria-label="Language">
          {languages.map((l) => (
            <Tabs.Tab key={l.key} value={l.key}>
              {l.label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {languages.map((l) => (
          <Tabs.Panel key={l.key} value={l.key} pt="xs">
            <Box pos="relative">
              <Code block tabIndex={0} aria-label={`The first call in ${l.label}`} pt={{ base: 44, sm: 'xs' }} style={{ maxHeight: 360, overflow: 'auto', fontSize: 'var(--mantine-font-size-xs)' }}>
                {snippet(l.key, account)}
              </Code>
              <Box pos="absolute" top={6} right={6}>
                <CopyButton value={snippet(l.key, account)} label="Copy" />
              </Box>
            </Box>
          </Tabs.Panel>
        ))}
      </Tabs>
      {secret ? (
        <Alert color="yellow" variant="light" title="The new App Secret is in the code above">
          It is shown until you leave this page, and never again. Keep it where your programs read it.
        </Alert>
      ) : (
        <Group gap="xs" justify="space-between" align="flex-start">
          <Text size="xs" c="dimmed" flex="1 1 240px">
            The App Secret was shown once, when the account was made: the server keeps only its hash. The code reads it from the environment; set it first: <Code>export MUSTER_APP_SECRET=…</Code>
          </Text>
          {may('settings:write') && (
            <Button size="xs" variant="default" loading={fresh.isPending} onClick={() => void make()}>
              I do not have it: make a new one
            </Button>
          )}
        </Group>
      )}
      {fresh.isError && (
        <Text size="sm" role="alert" c="var(--mantine-color-error)">
          {messageOf(fresh.error)}
        </Text>
      )}
    </Stack>
  )
}
