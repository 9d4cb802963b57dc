// Package catalog keeps, in bounded memory, what the properties of an event type, or the
// attributes of profiles, look like: which there are, the JSON types of their values,
// how many of the objects looked at have them, when first and last, and their most
// frequent values. It is part of the state machine's state: what a [Sketch] holds follows
// from the objects that it was shown, in their order, and from nothing else.
//
// Not every object is shown to it: [Sampled] says which. All numbers are of those looked
// at. A path or value that has no room is counted and not kept.
//
// A path or value may be a person's alone. Of each the sketch keeps up to [maxProfiles]
// profiles that it was seen with, and drops it when the last of these is erased. See
// docs/decisions/0053.
package catalog
