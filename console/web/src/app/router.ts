import { createRoute, createRouter, redirect } from '@tanstack/react-router'
import { ScreenBoundary } from '@/shared/ScreenBoundary'
import type { QueryClient } from '@tanstack/react-query'
import { first, screens } from '@/screens/registry'
import { rootRoute, shellRoute } from './root'

type ScreenRoute = (typeof screens)[number]['routes'][number]

const indexRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: first, replace: true })
  },
})

const routeTree = rootRoute.addChildren([shellRoute.addChildren([indexRoute, ...screens.flatMap((s): ScreenRoute[] => [...s.routes])])])

export const newRouter = (client: QueryClient) =>
  createRouter({ routeTree, basepath: '/console', context: { client }, defaultErrorComponent: ScreenBoundary, defaultPreload: 'intent', scrollRestoration: true })

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof newRouter>
  }
}
