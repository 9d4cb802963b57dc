import { channelNames } from '../segments/fields'

export const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1)

export const channelName = (c: string) => channelNames[c] ?? c

/** A channel at the beginning of a sentence. */
export const channelTitle = (c: string) => capital(channelName(c))
