// Package api is the console API: what the web page and people's scripts call
// to look at profiles, save segments and change settings.
//
// # Background
//
// The calls are JSON under /console/api/v1 and answer one envelope: status
// ("success" or "failure"), message and data, with real HTTP status codes. A
// person signs in with POST /session and sends the token of the answer as
// "Authorization: Bearer …". What an account may see is decided by the account
// number in the token and by nothing that a request says.
//
// # How it is organised
//
// [API] holds the chain that all calls share (call.go): find the session, check
// the permission, run, write the envelope; classify.go is the one place where
// errors become statuses. Each noun has its file: session.go, segments.go,
// members.go, preview.go, transitions.go, profiles.go, timeline.go, catalog.go,
// settings.go, live.go, users.go, companies.go, apikeys.go. The web page's session
// is in a cookie, with a token against forged calls (csrf.go). Changes are
// commands of the resolver; nothing is kept here but the
// guards: login_throttle.go (against guessing passwords), device.go (known devices), semaphore.go (how many costly
// things run at once).
//
// API keys have the calls whose permission they may hold as well (shared.go): package
// keyapi lets the key in, checks the request, and runs the same handler.
//
// [Ops] serves /healthz, /readyz and /metrics and answers everything else with
// 503 until the service is ready. [Bootstrap] makes the first account.
//
// # From where answers come
//
// Of a segment that is live the engine knows the members: counts, pages of
// members and where a profile belongs are read from one view of the state, with
// no question to history and no snapshot. While a segment is building (or one
// it refers to) history is asked: under the read lock what the engine knows of
// its conditions, the cut of the log and, if profiles must be looked at, a
// snapshot of them are taken; outside of the lock history is asked for the rest,
// up to that cut (evaluate.go). Previews are answered in the same way. Questions
// to history wait for their turn, and do not make others wait.
//
// The instant of an answer is the larger of the clock and log time, so that no
// acknowledged event is in the future of a read that follows it.
//
// # Streams
//
// Live events and transitions are server-sent events (stream.go). Transitions
// are complete: a stream watches first, then reads of history what was before,
// and does so again when it was too slow (transitions.go).
//
// # Invariants
//
//   - R2: accounts never see each other's data.
//   - Q1: bodies, pages, evaluations under way, password computations, watchers
//     and the table of guesses are bounded.
package api
