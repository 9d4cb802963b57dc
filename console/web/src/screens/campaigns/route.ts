import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { oneOf, searchOf, text } from '@/shared/search'
import type { Screen } from '../screen'

const list = createRoute({
  getParentRoute: () => shellRoute,
  path: 'campaigns',
  validateSearch: searchOf({ q: text, status: oneOf('draft', 'scheduled', 'sending', 'testing', 'waiting', 'sent', 'stopped') }),
  component: lazyRouteComponent(() => import('./CampaignList'), 'CampaignList'),
})

const fresh = createRoute({ getParentRoute: () => shellRoute, path: 'campaigns/new', validateSearch: searchOf({ copy: text, template: text }), component: lazyRouteComponent(() => import('./NewCampaign'), 'NewCampaign') })

/** person is the profile for whom the preview is rendered. */
const edit = createRoute({
  getParentRoute: () => shellRoute,
  path: 'campaigns/$id/edit',
  validateSearch: searchOf({ step: oneOf('message', 'audience', 'send'), person: text }),
  component: lazyRouteComponent(() => import('./CampaignEditor'), 'EditCampaign'),
})

const results = createRoute({ getParentRoute: () => shellRoute, path: 'campaigns/$id', validateSearch: searchOf({ tab: oneOf('numbers', 'recipients') }), component: lazyRouteComponent(() => import('./CampaignResults'), 'CampaignResults') })

const routes = [list, fresh, edit, results] as const

export const campaigns = {
  routes,
  nav: { label: 'Campaigns', to: '/campaigns', icon: 'send', group: 'Messages', permission: 'campaigns:read' },
  commands: [{ label: 'New campaign', to: '/campaigns/new', permission: 'campaigns:write' }],
} as const satisfies Screen<(typeof routes)[number]>
