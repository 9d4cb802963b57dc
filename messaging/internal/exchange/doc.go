// Package exchange carries one request to a provider's HTTP API and reads its
// answer, within bounds.
//
// It answers the two questions every sender has after a failure: did the
// request leave in full (then the provider may have acted on it), and when may
// it be repeated. Addresses come from accounts' settings and from browsers, so
// [NewClient] connects to public addresses only unless told otherwise;
// redirects are never followed.
package exchange
