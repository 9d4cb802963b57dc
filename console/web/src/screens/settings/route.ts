import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { oneOf, searchOf, text } from '@/shared/search'
import type { Screen } from '../screen'

const account = createRoute({ getParentRoute: () => shellRoute, path: 'settings', component: lazyRouteComponent(() => import('./AccountSettings'), 'AccountSettings') })
const keys = createRoute({ getParentRoute: () => shellRoute, path: 'settings/keys', component: lazyRouteComponent(() => import('./Keys'), 'Keys') })
const sources = createRoute({ getParentRoute: () => shellRoute, path: 'settings/sources', component: lazyRouteComponent(() => import('./Sources'), 'Sources') })
const source = createRoute({ getParentRoute: () => shellRoute, path: 'settings/sources/$id', component: lazyRouteComponent(() => import('./Source'), 'Source') })
const webhooks = createRoute({ getParentRoute: () => shellRoute, path: 'settings/webhooks', component: lazyRouteComponent(() => import('./Webhooks'), 'Webhooks') })
const webhook = createRoute({
  getParentRoute: () => shellRoute,
  path: 'settings/webhooks/$id',
  validateSearch: searchOf({ tab: oneOf('deliveries', 'dead'), status: oneOf('delivered', 'waiting', 'failed') }),
  component: lazyRouteComponent(() => import('./Webhook'), 'Webhook'),
})
const domains = createRoute({ getParentRoute: () => shellRoute, path: 'settings/domains', component: lazyRouteComponent(() => import('./Domains'), 'Domains') })
const preferences = createRoute({ getParentRoute: () => shellRoute, path: 'settings/preferences', component: lazyRouteComponent(() => import('./Preferences'), 'Preferences') })
const limits = createRoute({ getParentRoute: () => shellRoute, path: 'settings/limits', component: lazyRouteComponent(() => import('./Limits'), 'LimitsPage') })
const inApp = createRoute({ getParentRoute: () => shellRoute, path: 'settings/in-app', component: lazyRouteComponent(() => import('./InApp'), 'InApp') })
const revenue = createRoute({ getParentRoute: () => shellRoute, path: 'settings/revenue', component: lazyRouteComponent(() => import('./RevenueSettings'), 'RevenueSettings') })
const providers = createRoute({ getParentRoute: () => shellRoute, path: 'settings/providers', component: lazyRouteComponent(() => import('./Providers'), 'Providers') })
const users = createRoute({ getParentRoute: () => shellRoute, path: 'settings/users', component: lazyRouteComponent(() => import('./Users'), 'Users') })
const audit = createRoute({ getParentRoute: () => shellRoute, path: 'settings/audit', validateSearch: searchOf({ kind: text, target: text }), component: lazyRouteComponent(() => import('./Audit'), 'Audit') })
const companies = createRoute({ getParentRoute: () => shellRoute, path: 'settings/companies', component: lazyRouteComponent(() => import('./Companies'), 'Companies') })

const routes = [account, keys, sources, source, webhooks, webhook, domains, preferences, limits, inApp, revenue, providers, users, audit, companies] as const

export const settingsScreen = {
  routes,
  nav: { label: 'Settings', to: '/settings', icon: 'settings', group: 'Account' },
  commands: [
    { label: 'API keys', to: '/settings/keys', permission: 'api_keys:read' },
    { label: 'Sources', to: '/settings/sources', permission: 'events:read' },
    { label: 'Webhooks', to: '/settings/webhooks', permission: 'settings:read' },
    { label: 'Sender domains', to: '/settings/domains', permission: 'settings:read' },
    { label: 'Preference page', to: '/settings/preferences', permission: 'settings:read' },
    { label: 'Sending limits', to: '/settings/limits', permission: 'settings:read' },
    { label: 'In-app messages', to: '/settings/in-app', permission: 'campaigns:read' },
    { label: 'Attribution of revenue', to: '/settings/revenue', permission: 'settings:read' },
    { label: 'Users', to: '/settings/users', permission: 'users:read' },
  ],
} as const satisfies Screen<(typeof routes)[number]>
