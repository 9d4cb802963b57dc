// Package api is the console API: what the web page and people's scripts call
// to look at profiles, save segments and change settings.
//
// # Background
//
// The calls are JSON under /console/api/v1 and answer one envelope: status
// ("success" or "failure"), message and data, with real HTTP status codes. A
// person signs in with POST /session and sends the token of the answer as
// "Authorization: Bearer …". Only the account number in the token decides which
// account a call sees, never the request.
//
// # How it is organised
//
// [API] assembles packages that do not know each other. Each offers the calls of its
// nouns as groups of routes (routes.go):
//
//   - internal/accounts: sessions, users, API keys, companies, the audit log
//   - internal/settings: settings, sender domains, sources
//   - internal/messages: campaigns, templates, captured messages, webhooks
//   - internal/providers: keys of providers, and what providers report
//   - internal/links: links of messages
//   - internal/segments: segments, previews, explanations, transitions
//   - internal/events: events as they come, the catalog of event types and attributes
//   - internal/profiles: profiles, searches, timelines, consents, devices, lists, erasures
//   - internal/automation: flows, dry runs, enrolments
//   - this package: exports and imports
//
// They share internal/handler: the chain of all calls (session, permission, body,
// envelope), problems, pages and streams. Calls that ask which profiles a definition holds
// for, or which segments hold a profile, use internal/evaluation. Changes are commands of
// the resolver.
//
// API keys have the calls whose permission they may hold as well: package
// keyapi lets the key in, checks the request, and runs the same handler.
//
// [Ops] serves /healthz, /readyz and /metrics and answers everything else with
// 503 until the service is ready. [accounts.Bootstrap] makes the first account.
//
// # Where answers come from
//
// The engine knows the members of live segments. One view of the state has counts,
// pages of members and the memberships of a profile; no query of history and no
// snapshot is needed. While a segment (or one it refers to) is being built, the call
// queries history. Under the read lock it takes the engine's answers to the
// conditions, the cut of the log and, if needed, a snapshot of the profiles; outside
// of the lock it queries history for the rest, up to that cut (internal/evaluation).
// Previews work in the same way. Queries of history wait in a queue, and do not make
// other calls wait.
//
// The instant of an answer is the larger of the clock and log time, so that no
// acknowledged event is in the future of a read that follows it.
//
// # Streams
//
// Live events and transitions are server-sent events (internal/handler/stream.go). Transitions
// are complete: a stream watches first, then reads earlier ones from history,
// and reads history again when it falls behind (internal/segments/transitions.go).
//
// # Invariants
//
//   - R2: accounts never see each other's data.
//   - Q1: bodies, pages, evaluations under way, password computations, watchers
//     and the table of guesses are bounded.
package api
