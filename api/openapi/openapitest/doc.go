// Package openapitest checks a running service against its OpenAPI document.
//
// # How it works
//
// [Story] is a list of requests that tell a story: each names its operation, and
// the values it needs of answers before. [Walk] makes them, in order, and judges
// each request that is accepted and each answer by the document that the service
// itself serves. For the judgement every shape is closed: a field that the
// document does not have is a fault. At the end each operation must have been
// answered with success and, where it can fail, with a failure; and each field
// of a request's body that is described must have been sent.
//
// # Adding an operation
//
// Add a step to the list of its noun.
package openapitest
