// Package generators has the test that generators of clients take /openapi.json,
// and that the clients they make work.
//
// # What runs
//
// The test builds muster, starts it and fetches the document. Redocly checks it;
// openapi-typescript, oapi-codegen, openapi-generator (for Go) and
// openapi-python-client make clients of it. Each client is compiled, or read by
// Python, and then goes through the README's five minutes against a server of its
// own. The tours in Go, TypeScript and Python must print the lines of
// testdata/tour.txt. What openapi-generator makes goes through a shorter one, with
// the alternatives, nulls and failures that break clients.
//
// # The tools
//
// Their versions, and those of all that they need, are pinned in testdata, each in
// its own language's way: go.mod and go.sum, package-lock.json, requirements.txt
// with hashes (which has the jar of openapi-generator, too). They are installed
// once, in the user's cache directory under muster-generators, and need Node.js
// with npm, Java and Python with venv. Where those are missing the test is skipped
// with a line that says so, unless MUSTER_REQUIRE_GENERATORS is set, as it is in
// continuous integration.
//
// # Moving to a newer version
//
//   - Go, in testdata/go: go get -tool MODULE@VERSION. The generated packages are
//     not there, so that go mod tidy fails without generating first.
//   - TypeScript, in testdata/typescript: edit package.json, then
//     npm install --package-lock-only.
//   - Python, in testdata/python: edit requirements.in, then
//     pip-compile --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links.
package generators
