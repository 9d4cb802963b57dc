// Package automation carries out the flows of an account: it enrols profiles when something
// triggers a flow, takes them through its steps, and resumes them when they are due. What a
// flow is, and how one enrolment advances, is in package flows.
//
// # How data is organised
//
// A [State] has the flows of one account. Of a flow, drafts too, it keeps what is saved
// ([Flow]), the parsed definition, counts, and sets of profiles and of due times. These sets
// take a few bytes for each profile. The enrolments of a profile in a flow are in the store.
//
// A [Runner] has what the accounts of one machine share. Its [Work] is that of the record that
// is being applied: what has triggered flows and is to be enrolled, how many steps and
// enrolments the record may still do, and scratch memory.
//
// What flows need of profiles, segments and the outbox they ask of a [Port].
//
// # How a record goes through flows
//
// The machine reports events ([State.Event]) and transitions ([State.Transition]), which
// collects triggers. When it has reached a state that fits together it calls [State.React],
// which enrols the triggered profiles and carries out steps until nothing new follows. What the
// record has no room for is deferred to later records, in order: see [State.Drain] and
// [State.CatchUp]. As time passes, [State.Advance] advances flows and segments together.
//
// # Invariants
//
//   - F1: a profile is enrolled once for each trigger, and passes each step once.
//   - L3: the work of one record is bounded, see [Bounds].
//   - R1: the state depends on the log alone. The order of effects is part of the state.
package automation
