import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { oneOf, searchOf, text } from '@/shared/search'
import type { Screen } from '../screen'

const list = createRoute({
  getParentRoute: () => shellRoute,
  path: 'segments',
  validateSearch: searchOf({ q: text }),
  component: lazyRouteComponent(() => import('./SegmentList'), 'SegmentList'),
})

const fresh = createRoute({
  getParentRoute: () => shellRoute,
  path: 'segments/new',
  /** definition is the JSON of one to begin with; copy is the id of a segment to begin with. */
  validateSearch: searchOf({ name: text, definition: text, copy: text, view: oneOf('form', 'json') }),
  component: lazyRouteComponent(() => import('./SegmentEditor'), 'NewSegment'),
})

const edit = createRoute({
  getParentRoute: () => shellRoute,
  path: 'segments/$id/edit',
  /** definition is the JSON of unsaved changes. */
  validateSearch: searchOf({ definition: text, view: oneOf('form', 'json') }),
  component: lazyRouteComponent(() => import('./SegmentEditor'), 'EditSegment'),
})

const routes = [list, fresh, edit] as const

export const segments = {
  routes,
  nav: { label: 'Segments', to: '/segments', icon: 'segment', group: 'Audience', permission: 'segments:read' },
  commands: [{ label: 'New segment', to: '/segments/new', permission: 'segments:write' }],
} as const satisfies Screen<(typeof routes)[number]>
