import { analytics } from './analytics/route'
import { campaigns } from './campaigns/route'
import { catalogueScreen } from './catalogue/route'
import { flows } from './flows/route'
import { forms } from './forms/route'
import { homeScreen } from './home/route'
import { importsScreen } from './imports/route'
import { lists } from './lists/route'
import { liveScreen } from './live/route'
import { people } from './people/route'
import { segment } from './segment/route'
import { segments } from './segments/route'
import { settingsScreen } from './settings/route'
import { templates } from './templates/route'
import { unsentScreen } from './unsent/route'

/** Every screen, one line each, in the order of the navigation. */
export const screens = [
  homeScreen,
  segments,
  segment,
  people,
  lists,
  forms,
  campaigns,
  flows,
  templates,
  unsentScreen,
  analytics,
  liveScreen,
  catalogueScreen,
  importsScreen,
  settingsScreen,
] as const

/** Where / leads to. */
export const first = '/home'
