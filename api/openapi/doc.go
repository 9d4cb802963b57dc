// Package openapi serves the OpenAPI 3.1 document of the service's HTTP API, with a
// page that shows it. The document is made of the operations themselves
// (package operation).
//
// # What is checked
//
//   - Every route of the service is in the document and the reverse (cmd/muster).
//   - The document is valid OpenAPI 3.1, its shapes are valid JSON Schema, and its
//     examples fit their shapes (document_test.go).
//   - What the running service answers fits the shapes, with no field that is not
//     described; what it accepts fits those of requests (package openapitest, run
//     by cmd/muster).
package openapi
