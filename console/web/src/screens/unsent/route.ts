import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { oneOf, searchOf, text, whole } from '@/shared/search'
import type { Screen } from '../screen'

/** open is the number of the message that is shown; to is a whole address. */
const page = createRoute({
  getParentRoute: () => shellRoute,
  path: 'unsent',
  validateSearch: searchOf({ channel: oneOf('email', 'sms', 'push', 'whatsapp', 'im', 'in_app'), to: text, open: whole }),
  component: lazyRouteComponent(() => import('./UnsentMessages'), 'UnsentMessages'),
})

const routes = [page] as const

/** Messages that the server kept instead of sending them; the navigation has it while it keeps any. */
export const unsentScreen = {
  routes,
  nav: { label: 'Unsent messages', to: '/unsent', icon: 'mail', group: 'Messages', permission: 'campaigns:read', whileCaptured: true },
} as const satisfies Screen<(typeof routes)[number]>
