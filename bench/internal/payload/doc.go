// Package payload builds the request bodies of a load run.
//
// # How it works
//
// A [Worker] holds a few complete HTTP requests (head and body) in memory. The
// text is drawn once from a seeded generator; for each request only digits are
// overwritten in place: the profile's number in e-mail and external id, the
// value, and the idempotency key. Making a request therefore costs tens of
// nanoseconds per event and allocates nothing, so that a loader on the same
// cores as the server takes little from it.
//
// # Keys
//
// Every event carries a key made of the worker's number and a sequence number
// ("b0007-000000000042", see [AppendKey]). Acknowledged events are therefore
// ranges of sequence numbers per worker, however many there are.
//
// # Profiles
//
// Profiles are numbers. Known ones are 0 to Profiles-1 and are shared by all
// workers; new ones are numbered above them, in a range of each worker's own,
// so that a new profile is never met twice.
package payload
