/**
 * How many of the messages sent were delivered; null where it is not known: many relays and providers report
 * bounces only, and then none is delivered by the numbers though people open them.
 */
export const deliveriesOf = ({ sent, delivered, bounces }: { sent: number; delivered: number; bounces: number }): number | null => (delivered === 0 && sent > bounces ? null : delivered)

export const notReported = 'not reported'
