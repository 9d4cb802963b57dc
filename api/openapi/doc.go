// Package openapi describes all that the service answers over HTTP, as one
// OpenAPI 3.1 document, and serves it with a page to read it by.
//
// # How it is organised
//
// Each noun of each surface has a file with a function that returns its [group]:
// a table of operations with their permission, parameters, request and answer
// ([operation]). Shapes are written with the small vocabulary of schema.go; a
// shape with a name ([named]) becomes a component of the document. What a surface
// adds to every operation (envelope, errors, authentication) stands once, in
// surface.go. document.go puts all of it together.
//
// Examples are not written beside the shapes but made of them: each leaf has one,
// and an object's is made of its fields', so that an example cannot be out of
// date on its own.
//
// # Adding an operation
//
// Add a line to the table of its noun, or a file with a new table and its name to
// groups in document.go. Then add a step to the story in package openapitest:
// the tests fail for an operation that the story does not call.
//
// # What is checked
//
//   - Every route of the service is in the document and the reverse, with the
//     same permission (cmd/muster).
//   - The document is valid OpenAPI 3.1, its shapes are valid JSON Schema, and its
//     examples fit their shapes (document_test.go).
//   - What the running service answers fits the shapes, with no field that is not
//     described; what it accepts fits those of requests (package openapitest, run
//     by cmd/muster).
package openapi
