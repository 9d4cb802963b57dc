import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '@/app/root'
import { peopleSearch } from '@/shared/peopleSearch'
import { oneOf, searchOf, text, whole } from '@/shared/search'
import type { Screen } from '../screen'

const page = createRoute({
  getParentRoute: () => shellRoute,
  path: 'segments/$id',
  validateSearch: searchOf({
    ...peopleSearch,
    tab: oneOf('overview', 'members', 'versions', 'compare'),
    /** The spans of the chart. */
    by: oneOf('hour', 'day', 'week', 'month'),
    /** The segment to compare with. */
    with: text,
    /** A past instant. */
    at: text,
    /** The version that is compared with the present. */
    version: whole,
  }),
  component: lazyRouteComponent(() => import('./SegmentPage'), 'SegmentPage'),
})

const routes = [page] as const

/** The page of one segment; the list of segments leads to it. */
export const segment = { routes } as const satisfies Screen<(typeof routes)[number]>
