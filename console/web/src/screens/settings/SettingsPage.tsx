import { Box, Group, Paper, Stack, Title } from '@mantine/core'
import { useRouterState } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useMay, useSession } from '@/shared/api/session'
import { NavigationLink } from '@/shared/links'
import { Page } from '@/shared/Page'
import { NoPermission } from '@/shared/states'
import classes from './settings.module.css'

const sections = [
  { to: '/settings', label: 'Account', permission: 'settings:read' },
  { to: '/settings/keys', label: 'API keys', permission: 'api_keys:read' },
  { to: '/settings/sources', label: 'Sources', permission: 'events:read' },
  { to: '/settings/webhooks', label: 'Webhooks', permission: 'settings:read' },
  { to: '/settings/domains', label: 'Sender domains', permission: 'settings:read' },
  { to: '/settings/preferences', label: 'Preference page', permission: 'settings:read' },
  { to: '/settings/limits', label: 'Sending limits', permission: 'settings:read' },
  { to: '/settings/in-app', label: 'In-app messages', permission: 'campaigns:read' },
  { to: '/settings/revenue', label: 'Revenue', permission: 'settings:read' },
  { to: '/settings/providers', label: 'Providers', permission: 'settings:write' },
  { to: '/settings/users', label: 'Users', permission: 'users:read' },
  { to: '/settings/audit', label: 'Audit log', permission: 'settings:read' },
  { to: '/settings/companies', label: 'Companies', permission: 'admin' },
] as const

/** The frame of a section of the settings: the sections beside it, and whether the person may see it. */
export function SettingsPage({ section, title, actions, aside, children }: { section: (typeof sections)[number]['to']; title: string; actions?: ReactNode; aside?: ReactNode; children: ReactNode }) {
  const may = useMay()
  const admin = useSession().data?.admin ?? false
  const path = useRouterState({ select: (s) => s.location.pathname })
  const permission = sections.find((s) => s.to === section)!.permission
  const allowed = permission === 'admin' ? admin : may(permission)
  return (
    <Page title="Settings">
      <div className={classes.frame}>
        <nav aria-label="Sections of the settings" className={classes.sections}>
          {sections
            .filter((s) => s.permission !== 'admin' || admin)
            .map((s) => (
              <NavigationLink key={s.to} to={s.to} activeOptions={{ exact: true }} label={s.label} active={s.to === section} aria-current={s.to === path ? 'page' : undefined} variant="light" py={6} className={classes.section} />
            ))}
        </nav>
        <Box miw={0}>
          <Group justify="space-between" mb="sm" gap="sm">
            <Group gap="sm" align="baseline">
              <Title order={2} size="h4" style={{ overflowWrap: 'anywhere' }}>
                {title}
              </Title>
              {aside}
            </Group>
            {allowed && <Group gap="xs">{actions}</Group>}
          </Group>
          {allowed ? children : <NoPermission permission={permission === 'admin' ? '' : permission} />}
        </Box>
      </div>
    </Page>
  )
}

/** Settings that belong together, under a title. */
export function SettingsGroup({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Paper withBorder p="md">
      <Stack>
        <Title order={3} size="h5">
          {title}
        </Title>
        {children}
      </Stack>
    </Paper>
  )
}
