import { Alert, Button, Center, Loader, Stack, Text, Title } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ApiError, messageOf, permissionIn } from './api/errors'
import { Icon, type IconName } from './icons'

/** Loading, empty, failed and not permitted: each says what to do. */

export function Loading({ what }: { what: string }) {
  return (
    <Center py="xl" role="status" aria-label={`Loading ${what}`}>
      <Loader size="sm" />
    </Center>
  )
}

export function Empty({ icon = 'info', title, children, action }: { icon?: IconName; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <Center py={48}>
      <Stack align="center" gap="xs" maw={420}>
        <Text c="dimmed" component="div">
          <Icon name={icon} size={28} />
        </Text>
        <Title order={2} size="h4" ta="center">
          {title}
        </Title>
        {children && (
          <Text size="sm" c="dimmed" ta="center" component="div">
            {children}
          </Text>
        )}
        {action}
      </Stack>
    </Center>
  )
}

export function NoPermission({ permission }: { permission: string }) {
  return (
    <Empty icon="lock" title="You cannot see this">
      {permission ? <>It needs the permission <b>{permission}</b>. </> : null}
      Ask somebody who manages the users of your account.
    </Empty>
  )
}

export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error instanceof ApiError && error.forbidden) return <NoPermission permission={permissionIn(error.message)} />
  return (
    <Alert role="alert" color="red" variant="light" icon={<Icon name="alert" />} title="Something went wrong" my="sm">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{messageOf(error)}</Text>
        {retry && (
          <Button size="xs" variant="default" onClick={retry} leftSection={<Icon name="refresh" size={14} />}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  )
}

/** Shows what a query found, or that it is loading, failed or not permitted. */
export function QueryView<T>({ query, what, children }: { query: UseQueryResult<T>; what: string; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return <>{children(query.data)}</>
  if (query.isError) return <Failed error={query.error} retry={() => void query.refetch()} />
  return <Loading what={what} />
}
