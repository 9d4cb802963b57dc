import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import type { Screen } from '../screen'

const all = createRoute({ getParentRoute: () => shellRoute, path: 'forms', component: lazyRouteComponent(() => import('./Forms'), 'Forms') })

const one = createRoute({ getParentRoute: () => shellRoute, path: 'forms/$id', component: lazyRouteComponent(() => import('./FormPage'), 'FormPage') })

const routes = [all, one] as const

export const forms = {
  routes,
  nav: { label: 'Forms', to: '/forms', icon: 'edit', group: 'Audience', permission: 'lists:read' },
} as const satisfies Screen<(typeof routes)[number]>
