import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { flag, oneOf, searchOf, text } from '@/shared/search'
import type { Screen } from '../screen'

const list = createRoute({ getParentRoute: () => shellRoute, path: 'flows', validateSearch: searchOf({ q: text }), component: lazyRouteComponent(() => import('./FlowList'), 'FlowList') })

/** step is the id of the step whose panel is open, "trigger" for the trigger; try opens the dry run, person is on whom. */
const page = createRoute({ getParentRoute: () => shellRoute, path: 'flows/$id', validateSearch: searchOf({ view: oneOf('canvas', 'json', 'enrolments'), step: text, try: flag, person: text }), component: lazyRouteComponent(() => import('./FlowPage'), 'FlowPage') })

const routes = [list, page] as const

export const flows = {
  routes,
  nav: { label: 'Flows', to: '/flows', icon: 'flow', group: 'Messages', permission: 'flows:read' },
} as const satisfies Screen<(typeof routes)[number]>
