import { createRootRouteWithContext, createRoute, Outlet } from '@tanstack/react-router'
import type { QueryClient } from '@tanstack/react-query'
import { ButtonLink } from '@/shared/links'
import { Empty } from '@/shared/states'
import { ScreenBoundary } from '@/shared/ScreenBoundary'
import { Shell } from './Shell'

export const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()({
  component: Outlet,
  notFoundComponent: () => (
    <Empty icon="search" title="Page not found" action={<ButtonLink to="/">Go to Home</ButtonLink>}>
      Check the address, or start from Home.
    </Empty>
  ),
})

/** The parent of every screen: navigation, sign-in, palette. */
export const shellRoute = createRoute({ getParentRoute: () => rootRoute, id: 'shell', component: Shell, errorComponent: ScreenBoundary })
