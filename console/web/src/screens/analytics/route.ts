import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { oneOf, searchOf, text } from '@/shared/search'
import type { Screen } from '../screen'

const page = createRoute({
  getParentRoute: () => shellRoute,
  path: 'analytics',
  /** days is the range that ends now; from and to, as days (2026-01-31), go before it. */
  validateSearch: searchOf({ tab: oneOf('overview', 'channels', 'domains', 'flows', 'events', 'revenue'), days: oneOf('7', '30', '90', '365'), from: text, to: text, by: oneOf('hour', 'day', 'week', 'month'), channel: oneOf('email', 'sms', 'whatsapp', 'im', 'push', 'in_app') }),
  component: lazyRouteComponent(() => import('./Analytics'), 'Analytics'),
})

const routes = [page] as const

export const analytics = {
  routes,
  nav: { label: 'Analytics', to: '/analytics', icon: 'chart', group: 'Data', permission: 'analytics:read' },
} as const satisfies Screen<(typeof routes)[number]>
