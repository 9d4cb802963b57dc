import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { flag, oneOf, searchOf, text, whole } from '@/shared/search'
import type { Screen } from '../screen'

const list = createRoute({ getParentRoute: () => shellRoute, path: 'catalogue', validateSearch: searchOf({ q: text, tab: oneOf('events', 'attributes'), open: text, hidden: flag }), component: lazyRouteComponent(() => import('./Catalogue'), 'Catalogue') })
const type = createRoute({ getParentRoute: () => shellRoute, path: 'catalogue/$key', validateSearch: searchOf({ days: whole, open: text }), component: lazyRouteComponent(() => import('./EventType'), 'EventType') })

const routes = [list, type] as const

export const catalogueScreen = {
  routes,
  nav: { label: 'Catalogue', to: '/catalogue', icon: 'database', group: 'Data', permission: 'events:read' },
} as const satisfies Screen<(typeof routes)[number]>
