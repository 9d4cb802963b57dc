// Package operation describes the calls of the service's HTTP API as values: each
// [Operation] has its method and path, its permission, its query, its body, its
// answer and its bounds.
//
// # How it is organised
//
// The values stand where their handlers are: in api, api/keyapi, ingest and
// api/openapi each noun has a function that returns a [Group] of operations, each with
// the handler that answers it. That package registers, authorises and bounds calls by
// these values. What a [Surface] adds to every operation (envelope, errors,
// authentication) stands once, in surface.go and answers.go. [Document] makes the
// OpenAPI document of all of it.
//
// # Adding an operation
//
// Add a value to the group of its noun, beside the handler; a new group also to the
// list of groups of its package. Then add a step to the story in package openapitest:
// the tests fail for an operation that the story does not call.
package operation
