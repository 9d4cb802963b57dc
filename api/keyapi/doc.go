// Package keyapi has the calls that programs make with an API key: Surface A under
// /api/v1 and Surface C under /v1.
//
// # The chain
//
// Every request passes the same steps (serve.go): authenticate (auth.go), check the
// rate (limiter.go), find the route, check the permission, run, write the
// surface's envelope (envelope.go). The two surfaces share all of it. They differ
// in their rate, and in how failures look: on Surface A all but 401, 429 and the
// service's own faults are HTTP 200 with status "failure", on Surface C they have
// real HTTP statuses and codes.
//
// # Adding an operation
//
// Each noun has its file with a function that lists its operations beside what
// answers them; routes.go puts the lists together. An operation names the permission
// it needs, which must be one that keys can hold: New refuses any other. A handler
// reads its body with [keycall.Call.Decode], the state with [keycall.Call.Read], changes it
// with [keycall.Call.Command], and returns data, a [keycall.Reply] (data with a message or a cursor), or an
// error: [keycall.Fail] for what the caller did wrong, a [*resolver.Refusal] as it is, anything
// else for faults of the service. [keycall.Classify] is the one place where errors
// become answers. The calls about statistics are a package, internal/analytics.
//
// What people can do, keys can do: a call of the console whose permission a key may
// hold is a call of Surface A as well, without a line here (shared.go, and SharedGroups
// of package api). A noun is written here only where the interface describes its calls.
//
// # Invariants
//
//   - R2: the account is that of the key, and of nothing that a request says.
//   - Q1: bodies, limiters and uses to be recorded are bounded.
package keyapi
