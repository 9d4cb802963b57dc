import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { oneOf, searchOf, whole } from '@/shared/search'
import type { Screen } from '../screen'

const home = createRoute({
  getParentRoute: () => shellRoute,
  path: 'home',
  /** days is the time that the numbers are of; code is the language of the first call. */
  validateSearch: searchOf({ days: whole, code: oneOf('curl', 'go', 'node', 'python', 'browser') }),
  component: lazyRouteComponent(() => import('./Home'), 'Home'),
})

const routes = [home] as const

export const homeScreen = {
  routes,
  nav: { label: 'Home', to: '/home', icon: 'home', group: 'Overview' },
} as const satisfies Screen<(typeof routes)[number]>
