// Package sdks has the test that the SDKs of Segment, RudderStack and PostHog send to muster
// when nothing but their host name and key is changed.
//
// # What runs
//
// The test builds muster, starts it, and has each SDK send the same visit to a shop: pages
// and events of an unknown visitor, who then gives a name and buys. It must lead to the
// same profile, the same events and the same segments whatever sent it; with a clock that
// is three hours off; through a proxy that answers 429 and 503, once after the events were
// stored; and a wrong key must come to the application's callback for errors.
//
// TestSDKsThroughCrashes sends many events by each SDK while the server is killed ten times
// and a proxy answers 429 and 503, also after the events were stored: each event must be
// there once, and no error reach the application. It takes minutes:
//
//	MUSTER_LONG=1 go test ./internal/sdks -run TestSDKsThroughCrashes -timeout 60m -v
//
// MUSTER_SDK_EVENTS is how many events each SDK sends, 100,000 if it is not set.
//
// # The tools
//
// The SDKs and all that they need are pinned in testdata, each in its own language's way,
// and installed once in the user's cache directory under muster-sdks. Where Node.js with
// npm, or Python with venv, is missing, its part is skipped with a line that says so, unless
// MUSTER_REQUIRE_SDKS is set, as it is in continuous integration. Segment's SDK for Go is in
// a module of its own, so that muster's gains nothing.
//
// # Moving to a newer version
//
//   - Node.js, in testdata/node: edit package.json, then
//     npm install --package-lock-only --omit=optional.
//   - Python, in testdata/python: edit requirements.in, then
//     pip-compile --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links.
//   - Go, in testdata/go: go get MODULE@VERSION && go mod tidy.
package sdks
