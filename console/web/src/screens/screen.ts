import type { IconName } from '@/shared/icons'

/** What the registry needs of a screen. */
export interface Screen<Route = unknown> {
  /** Made by createRoute with shellRoute as parent. */
  routes: readonly Route[]
  /** The entry of the navigation and the palette; left out for screens that others lead to. With whileCaptured it is there while the server keeps messages instead of sending them. */
  nav?: { label: string; to: string; icon: IconName; group: 'Overview' | 'Audience' | 'Messages' | 'Data' | 'Account'; permission?: string; whileCaptured?: boolean }
  /** More commands of the palette. */
  commands?: { label: string; to: string; permission?: string }[]
}
