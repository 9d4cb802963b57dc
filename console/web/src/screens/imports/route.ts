import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import type { Screen } from '../screen'

const list = createRoute({ getParentRoute: () => shellRoute, path: 'imports', component: lazyRouteComponent(() => import('./Imports'), 'Imports') })
const one = createRoute({ getParentRoute: () => shellRoute, path: 'imports/$id', component: lazyRouteComponent(() => import('./Import'), 'ImportPage') })

const routes = [list, one] as const

export const importsScreen = {
  routes,
  nav: { label: 'Imports', to: '/imports', icon: 'upload', group: 'Data', permission: 'contacts:read' },
} as const satisfies Screen<(typeof routes)[number]>
