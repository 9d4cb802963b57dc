import { ActionIcon, Alert, AppShell, Box, Burger, Button, Group, Kbd, Menu, Modal, ScrollArea, Text, Tooltip, UnstyledButton, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { spotlight } from '@mantine/spotlight'
import { useQueryClient } from '@tanstack/react-query'
import { Outlet, useRouterState } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { screens } from '@/screens/registry'
import type { Screen } from '@/screens/screen'
import { useServerIsGone } from '@/shared/api/connection'
import { signOut, useMay, useSignedIn, type Session } from '@/shared/api/session'
import { useCapturedChannels } from '@/shared/captured'
import { Icon } from '@/shared/icons'
import { NavigationLink } from '@/shared/links'
import { Failed, Loading } from '@/shared/states'
import { Palette } from './Palette'
import { SignIn, SignInForm } from './SignIn'

/** The console for a signed-in user. When the session ends, signing in again keeps the screen. */
export function Shell() {
  const session = useSignedIn()
  const last = useRef<Session | null>(null)
  if (session.data) last.current = session.data
  if (session.isPending) return <Loading what="the console" />
  if (session.isError && !last.current) return <Failed error={session.error} retry={() => void session.refetch()} />
  if (!last.current) return <SignIn />
  return (
    <>
      <Frame session={last.current} />
      <Modal opened={session.data === null} onClose={() => {}} withCloseButton={false} title="Your session has expired. Sign in to continue." centered>
        <SignInForm email={last.current.email} />
      </Modal>
    </>
  )
}

function Frame({ session }: { session: Session }) {
  const [opened, { toggle, close }] = useDisclosure(false)
  const path = useRouterState({ select: (s) => s.location.pathname })
  useEffect(close, [path, close])
  const content = useRef<HTMLElement>(null)
  useEffect(() => {
    // What had the focus is gone with the screen before: the next Tab begins in the new one.
    if (document.activeElement === null || document.activeElement === document.body) content.current?.focus({ preventScroll: true })
  }, [path])
  return (
    <AppShell header={{ height: 48 }} navbar={{ width: 208, breakpoint: 'sm', collapsed: { mobile: !opened } }} padding={0}>
      <a href="#content" className="skip">
        <Button component="span" size="xs">
          Go to the content
        </Button>
      </a>
      <AppShell.Header>
        <Group h="100%" px="sm" gap="sm" wrap="nowrap">
          <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={opened ? 'Close the navigation' : 'Open the navigation'} />
          <img src="/console/favicon.svg" alt="" width={24} height={24} />
          <Text fw={600} truncate title={session.company}>
            {session.company || 'Muster'}
          </Text>
          <Box flex={1} />
          <UnstyledButton onClick={spotlight.open} visibleFrom="sm">
            <Group gap="xs" px="sm" h={30} bd="1px solid var(--mantine-color-default-border)" style={{ borderRadius: 'var(--mantine-radius-sm)' }} wrap="nowrap">
              <Icon name="search" size={14} />
              <Text size="xs" c="dimmed" mr="lg">
                Go to …
              </Text>
              <Kbd size="xs">Ctrl K</Kbd>
            </Group>
          </UnstyledButton>
          <ActionIcon variant="subtle" color="gray" onClick={spotlight.open} hiddenFrom="sm" aria-label="Open the command palette">
            <Icon name="search" />
          </ActionIcon>
          <Colours />
          <Person session={session} />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar aria-label="Screens">
        <AppShell.Section component={ScrollArea} grow p="xs">
          <Navigation />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} ref={content}>
        <Gone />
        <Outlet />
      </AppShell.Main>
      <Palette />
    </AppShell>
  )
}

/** Says that the server is away, for as long as it is. */
function Gone() {
  if (!useServerIsGone()) return null
  return (
    <Alert role="status" color="yellow" variant="light" radius={0} icon={<Icon name="alert" />} py="xs">
      The server does not answer. The page reconnects by itself; what you typed is kept.
    </Alert>
  )
}

function Navigation() {
  const may = useMay()
  const path = useRouterState({ select: (s) => s.location.pathname })
  const captures = useCapturedChannels().length > 0
  const groups = new Map<string, NonNullable<Screen['nav']>[]>()
  for (const { nav } of screens as readonly Screen[]) {
    if (nav && (!nav.permission || may(nav.permission)) && (!nav.whileCaptured || captures)) groups.set(nav.group, [...(groups.get(nav.group) ?? []), nav])
  }
  return [...groups].map(([name, entries]) => (
    <Box key={name} mb="sm" component="section" aria-label={name}>
      <Text size="xs" c="dimmed" px="xs" pb={2}>
        {name}
      </Text>
      {entries.map((nav) => {
        const active = path === nav.to || path.startsWith(nav.to + '/')
        return (
          <NavigationLink key={nav.to} to={nav.to as '/segments'} label={nav.label} leftSection={<Icon name={nav.icon} />} active={active} aria-current={active ? 'page' : undefined} variant="light" py={6} style={{ borderRadius: 'var(--mantine-radius-sm)' }} />
        )
      })}
    </Box>
  ))
}

function Colours() {
  const { setColorScheme } = useMantineColorScheme()
  const dark = useComputedColorScheme('light') === 'dark'
  const label = dark ? 'Light colours' : 'Dark colours'
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" onClick={() => setColorScheme(dark ? 'light' : 'dark')} aria-label={label}>
        <Icon name={dark ? 'sun' : 'moon'} />
      </ActionIcon>
    </Tooltip>
  )
}

function Person({ session }: { session: Session }) {
  const client = useQueryClient()
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label="You and your session">
          <Icon name="user" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {session.name && <div>{session.name}</div>}
          <div style={{ overflowWrap: 'anywhere' }}>{session.email}</div>
        </Menu.Label>
        <Menu.Item component="a" href="/reference" target="_blank" leftSection={<Icon name="code" size={14} />}>
          API reference
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item leftSection={<Icon name="logout" size={14} />} onClick={() => void signOut(client).then(() => window.location.assign('/console'))}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
