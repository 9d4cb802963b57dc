import { causeNames } from '../people/timelineWords'
import type { Segment } from './useSegment'

/**
 * What made somebody enter or leave, in words. The API has one cause for a segment that
 * was made and one that was changed, or that refers to a changed one; a segment that was
 * never changed and refers to none was only made.
 */
export function causeOf(cause: keyof typeof causeNames, s: Pick<Segment, 'created_at' | 'updated_at' | 'definition'>): string {
  const onlyMade = s.created_at === s.updated_at && !JSON.stringify(s.definition).includes('"segment_id"')
  return cause === 'definition' && onlyMade ? 'when the segment was created' : causeNames[cause]
}
