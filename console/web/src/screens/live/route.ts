import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { oneOf, searchOf, text, texts } from '@/shared/search'
import type { Screen } from '../screen'

const live = createRoute({
  getParentRoute: () => shellRoute,
  path: 'live',
  /** Types of events, an identifier or profile id, a segment that they moved, the outcome, and paths of properties as columns. */
  validateSearch: searchOf({ types: texts, who: text, segment: text, outcome: oneOf('accepted', 'refused', 'duplicate', 'all'), columns: texts }),
  component: lazyRouteComponent(() => import('./LiveEvents'), 'LiveEvents'),
})

const routes = [live] as const

export const liveScreen = {
  routes,
  nav: { label: 'Live events', to: '/live', icon: 'activity', group: 'Data', permission: 'events:read' },
} as const satisfies Screen<(typeof routes)[number]>
