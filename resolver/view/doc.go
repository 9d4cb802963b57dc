// Package view is what readers see of an account: its state at one offset. A [View] is handed
// to a function while the machine is held still, and is valid inside it; a [Snapshot] of the
// profiles, and a [FieldColumn], outlive it. [Published] is read without holding the machine.
//
// What it shows of people is in [Profiles], of segments in [Segments], of whom messages reach
// in [Reach], of fields of all profiles in [Columns], and of what refers to what in [UsedIn].
//
//   - view.go: the view and its parts, a profile as it is shown
//   - contacts.go, devices.go, reach.go, status.go: profiles as people whom messages are sent to
//   - segments.go, published.go, used_in.go: segments, their members, what refers to what
//   - search.go, growth.go, timeline.go, history.go: lists of profiles, and what history names
//   - snapshot.go, columns.go: what evaluations of definitions read of profiles
//   - campaigns.go, flows.go, outbox.go, sends.go: messages that are due or were sent
//   - features.go: the states of features, for their own questions
package view
