import { Alert, Box, Button, Collapse, Group, Loader, Paper, Stack, Text, ThemeIcon, Title, UnstyledButton } from '@mantine/core'
import { useState, type ReactNode } from 'react'
import { useMay, type Session } from '@/shared/api/session'
import { Captured } from '@/shared/captured'
import { timeOfDay } from '@/shared/format'
import { Icon } from '@/shared/icons'
import { AnchorLink } from '@/shared/links'
import { ScreenLink } from '@/shared/ScreenLink'
import { Failed } from '@/shared/states'
import { Snippets } from './Snippets'
import type { FirstSteps } from './useFirstSteps'

/** The first steps. Each ticks itself when it is done; the first one as the event arrives. */
export function Checklist({ session, steps, hide }: { session: Session; steps: FirstSteps; hide?: () => void }) {
  const may = useMay()
  const known = (x: unknown) => x !== undefined
  return (
    <Paper withBorder component="section" aria-labelledby="first-steps">
      <Group justify="space-between" p="md" pb="xs">
        <Title order={2} size="h4" id="first-steps">
          First steps
        </Title>
        {hide && (
          <Button size="compact-xs" variant="subtle" color="gray" onClick={hide}>
            Hide
          </Button>
        )}
      </Group>
      <Box component="ol" m={0} p={0} style={{ listStyle: 'none' }}>
        <Step title="Send the first event" done={steps.hasEvents === true} opened={steps.hasEvents === false || steps.arrived !== null} said={steps.arrived && `${steps.arrived.event_type} arrived at ${timeOfDay(steps.arrived.timestamp)}`}>
          <Stack gap="sm">
            {steps.arrived ? <ArrivedNow steps={steps} /> : steps.failed ? <Failed error={steps.failed} retry={steps.retry} /> : null}
            {steps.hasEvents !== true && may('events:read') && <Waiting steps={steps} />}
            {!may('events:read') && (
              <Text size="sm" c="dimmed">
                To see it arrive here you need the permission events:read.
              </Text>
            )}
            <Snippets session={session} />
          </Stack>
        </Step>
        {known(steps.segments) && (
          <Step title="Save a segment" done={steps.segments! > 0}>
            <Text size="sm">
              A segment is a group of people who did something or have certain attributes. <AnchorLink to="/segments/new" size="sm">Build one</AnchorLink>; its count is exact while you type.
            </Text>
          </Step>
        )}
        {known(steps.messages) && (
          <Step title="Reach the people" done={steps.messages! > 0}>
            <Text size="sm">
              Make a <ScreenLink to="/flows" size="sm">flow</ScreenLink> that starts when somebody enters a segment, or a <ScreenLink to="/campaigns" size="sm">campaign</ScreenLink> for all of them now.
            </Text>
            <Box mt="xs">
              <Captured channel="email" />
            </Box>
          </Step>
        )}
        {known(steps.verified) && (
          <Step title="Verify the domain that you send from" done={steps.verified!}>
            <Text size="sm">
              Mailbox providers trust mail from a domain that names its senders. <ScreenLink to="/settings/domains" size="sm">Add your domain</ScreenLink> and publish its records.
            </Text>
          </Step>
        )}
      </Box>
    </Paper>
  )
}

function Step({ title, done, opened = false, said, children }: { title: string; done: boolean; opened?: boolean; said?: ReactNode; children: ReactNode }) {
  const [choice, setChoice] = useState<boolean | null>(null)
  const open = choice ?? opened
  return (
    <Box component="li" style={{ borderTop: '1px solid var(--mantine-color-default-border)' }} data-done={done || undefined}>
      <UnstyledButton w="100%" px="md" py="xs" aria-expanded={open} onClick={() => setChoice(!open)}>
        <Group gap="sm" wrap="nowrap">
          <ThemeIcon size={22} radius="xl" variant={done ? 'filled' : 'default'} color={done ? 'teal.9' : undefined} role="img" aria-label={done ? 'Done' : 'To do'}>
            {done && <Icon name="check" size={14} />}
          </ThemeIcon>
          <Text size="sm" fw={600} c={done ? 'dimmed' : undefined}>
            {title}
          </Text>
          {said && (
            <Text size="xs" c="dimmed" truncate>
              {said}
            </Text>
          )}
          <Box flex={1} />
          <Icon name={open ? 'chevronDown' : 'chevronRight'} size={14} />
        </Group>
      </UnstyledButton>
      <Collapse expanded={open}>
        <Box px="md" pb="md" pl={{ base: 'md', sm: 50 }}>
          {children}
        </Box>
      </Collapse>
    </Box>
  )
}

function ArrivedNow({ steps }: { steps: FirstSteps }) {
  const e = steps.arrived!
  const who = e.identity.email ?? e.identity.external_id ?? e.identity.phone ?? e.profile_id
  return (
    <Alert role="status" color="green" variant="light" icon={<Icon name="check" />} title={`${e.event_type} arrived at ${timeOfDay(e.timestamp)}`}>
      <Text size="sm">
        It is stored, and belongs to <ScreenLink to="/people/$id" params={{ id: e.profile_id }} size="sm">{who}</ScreenLink>. <ScreenLink to="/live" size="sm">Watch what else arrives</ScreenLink>
      </Text>
    </Alert>
  )
}

function Waiting({ steps }: { steps: FirstSteps }) {
  if (steps.refused)
    return (
      <Alert role="status" color="red" variant="light" icon={<Icon name="alert" />} title={`An event was refused at ${timeOfDay(steps.refused.timestamp)}`}>
        <Stack gap={4} align="flex-start">
          <Text size="sm">{steps.refused.reason}</Text>
          <ScreenLink to="/live" search={{ outcome: 'refused' }} size="sm">
            See its body
          </ScreenLink>
        </Stack>
      </Alert>
    )
  return (
    <Group gap="xs" role="status">
      <Loader size={14} />
      <Text size="sm" c="dimmed">
        {steps.stream === 'waiting' ? 'The connection is lost; it comes back by itself.' : 'Waiting for the first event. Run one of these; the step ticks itself when it arrives.'}
      </Text>
    </Group>
  )
}
