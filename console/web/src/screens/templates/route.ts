import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { searchOf, text } from '@/shared/search'
import type { Screen } from '../screen'

const list = createRoute({ getParentRoute: () => shellRoute, path: 'templates', validateSearch: searchOf({ q: text }), component: lazyRouteComponent(() => import('./TemplateList'), 'TemplateList') })

const fresh = createRoute({ getParentRoute: () => shellRoute, path: 'templates/new', validateSearch: searchOf({ copy: text }), component: lazyRouteComponent(() => import('./NewTemplate'), 'NewTemplate') })

/** person is the profile for whom the preview is rendered. */
const edit = createRoute({ getParentRoute: () => shellRoute, path: 'templates/$id', validateSearch: searchOf({ person: text }), component: lazyRouteComponent(() => import('./TemplateEditor'), 'EditTemplate') })

const routes = [list, fresh, edit] as const

export const templates = {
  routes,
  nav: { label: 'Templates', to: '/templates', icon: 'template', group: 'Messages', permission: 'templates:read' },
  commands: [{ label: 'New template', to: '/templates/new', permission: 'templates:write' }],
} as const satisfies Screen<(typeof routes)[number]>
