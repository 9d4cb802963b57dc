// Package flows is automation: definitions of flows, and how one person's enrolment
// through one of them goes on. It does no I/O and reads no clock.
//
// # How it is organised
//
//   - A [Flow] is a definition, parsed: a trigger and steps that refer to each
//     other by index. Steps form no loop, so that an enrolment in a flow has an end.
//   - An [Enrolment] is where one profile is in a flow: the step it stands at, since when, and
//     when it goes on. [Flow.Run] takes it on until it must wait; what steps do
//     to the world goes through a [Host].
//   - [Wait.Due] and [DateTrigger.Next] turn local times into instants, by the time
//     zones that the binary carries.
//
// # Drafts
//
// [Parse] refuses what is malformed, with its JSON path, and takes what is
// unfinished: people save drafts. [Flow.Validate] lists what is missing, by step,
// all of it at once, asking a [World] for what the definition refers to.
// [Flow.JSON] is the form in which a definition is kept; it is read back as it was,
// references to steps that are not there included.
//
// # Invariants
//
//   - F1: an enrolment passes each step at most once; what a step does is asked of
//     the host once.
//   - R1: what happens depends on the arguments only.
//   - Q1: definitions, and what is made of them, have bounds.
package flows
