// Package flows has the definitions of flows, and advances one profile's enrolment
// through one of them. It does no I/O and reads no clock.
//
// # How it is organised
//
//   - A [Flow] is a definition, parsed: a trigger and steps that refer to each
//     other by index. Steps form no loop, so that an enrolment in a flow has an end.
//   - An [Enrolment] is one profile's progress in a flow: its step, since when, and
//     when it is due. [Flow.Run] advances it until it must wait; the effects of steps
//     go through a [Host].
//   - [Wait.Due] and [DateTrigger.Next] turn local times into instants, by the time
//     zones that the binary carries.
//
// # Drafts
//
// [Parse] refuses malformed definitions, with the JSON path, and accepts
// unfinished ones: people save drafts. [Flow.Validate] lists everything that is missing,
// by step, and asks a [World] for the things that the definition refers to.
// [Flow.JSON] is the form in which a definition is kept; it is read back as it was,
// references to steps that are not there included.
//
// # Invariants
//
//   - F1: an enrolment passes each step at most once; the host is asked once for the
//     effect of a step.
//   - R1: what happens depends on the arguments only.
//   - Q1: definitions, and what is made of them, have bounds.
package flows
