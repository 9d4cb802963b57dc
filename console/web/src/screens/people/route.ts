import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { oneOf, searchOf, text, texts } from '@/shared/search'
import type { Screen } from '../screen'
import { peopleSearch } from '@/shared/peopleSearch'

const list = createRoute({
  getParentRoute: () => shellRoute,
  path: 'people',
  validateSearch: searchOf({ ...peopleSearch, add: oneOf('person') }),
  component: lazyRouteComponent(() => import('./PeopleList'), 'PeopleList'),
})

const person = createRoute({
  getParentRoute: () => shellRoute,
  path: 'people/$id',
  /** kinds are those of the timeline; why is the segment that is explained. */
  validateSearch: searchOf({ tab: oneOf('timeline', 'segments', 'flows', 'orders', 'inbox', 'profile', 'consent'), kinds: texts, why: text }),
  component: lazyRouteComponent(() => import('./PersonPage'), 'PersonPage'),
})

const routes = [list, person] as const

export const people = {
  routes,
  nav: { label: 'People', to: '/people', icon: 'users', group: 'Audience', permission: 'contacts:read' },
} as const satisfies Screen<(typeof routes)[number]>
