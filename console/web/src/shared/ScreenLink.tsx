import { Text, type AnchorProps } from '@mantine/core'
import { useRouter } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { AnchorLink } from './links'

/** A link to a screen that may not be there, such as to="/people/$id" params={{ id }}; then mere text. */
export function ScreenLink({ to, params, search, children, ...rest }: { to: string; params?: Record<string, string>; search?: Record<string, unknown>; children: ReactNode } & AnchorProps) {
  const router = useRouter()
  if (!(to in (router.routesByPath as Record<string, unknown>)))
    return (
      <Text span inherit>
        {children}
      </Text>
    )
  return (
    <AnchorLink to={to as '/segments'} params={params as never} search={search as never} {...rest}>
      {children}
    </AnchorLink>
  )
}
