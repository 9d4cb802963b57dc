import { Alert, Button, Paper, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { messageOf } from '@/shared/api/errors'
import { signIn, signInByLink } from '@/shared/api/session'
import { Loading } from '@/shared/states'
import { takeLink } from './link'

/** Asks for e-mail and password, or uses the link of the first start. */
export function SignIn() {
  const client = useQueryClient()
  const byLink = useMutation({ mutationFn: (token: string) => signInByLink(client, token) })
  const { mutate } = byLink
  useEffect(() => {
    const token = takeLink()
    if (token) mutate(token)
  }, [mutate])
  if (byLink.isPending) return <Loading what="your sign-in" />
  return (
    <Stack align="center" justify="center" mih="100dvh" p="md" component="main">
      <Title order={1} size="h2">
        Muster
      </Title>
      <Paper withBorder p="lg" w="100%" maw={380}>
        <Stack>
          {byLink.isError && (
            <Alert color="red" variant="light" role="alert">
              {messageOf(byLink.error)}
            </Alert>
          )}
          <SignInForm />
        </Stack>
      </Paper>
      <Text size="xs" c="dimmed" ta="center" maw={380}>
        The first start of the server prints the e-mail and password of the first user, and a link that signs them in.
      </Text>
    </Stack>
  )
}

export function SignInForm({ email: known = '' }: { email?: string }) {
  const client = useQueryClient()
  const [email, setEmail] = useState(known)
  const [password, setPassword] = useState('')
  const enter = useMutation({ mutationFn: () => signIn(client, email, password) })
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault()
        enter.mutate()
      }}
    >
      <Stack gap="sm">
        <TextInput label="E-mail" type="email" autoComplete="username" required value={email} onChange={(e) => setEmail(e.currentTarget.value)} data-autofocus={!known || undefined} />
        <PasswordInput label="Password" autoComplete="current-password" required value={password} onChange={(e) => setPassword(e.currentTarget.value)} data-autofocus={known ? true : undefined} visibilityToggleButtonProps={{ 'aria-label': 'Show the password' }} />
        {enter.isError && (
          <Text role="alert" size="sm" c="var(--mantine-color-error)">
            {messageOf(enter.error)}
          </Text>
        )}
        <Button type="submit" loading={enter.isPending}>
          Sign in
        </Button>
      </Stack>
    </form>
  )
}
