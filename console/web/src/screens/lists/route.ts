import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { peopleSearch } from '@/shared/peopleSearch'
import { oneOf, searchOf, text } from '@/shared/search'
import type { Screen } from '../screen'

/** edit is the open form: of a new list, or of the list with this id. */
const all = createRoute({ getParentRoute: () => shellRoute, path: 'lists', validateSearch: searchOf({ q: text, edit: text }), component: lazyRouteComponent(() => import('./Lists'), 'Lists') })

const one = createRoute({
  getParentRoute: () => shellRoute,
  path: 'lists/$id',
  validateSearch: searchOf({ ...peopleSearch, tab: oneOf('people', 'uses'), open: oneOf('add', 'edit') }),
  component: lazyRouteComponent(() => import('./ListPage'), 'ListPage'),
})

const routes = [all, one] as const

export const lists = {
  routes,
  nav: { label: 'Lists', to: '/lists', icon: 'list', group: 'Audience', permission: 'lists:read' },
} as const satisfies Screen<(typeof routes)[number]>
