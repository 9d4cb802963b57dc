// Package shape is a small vocabulary for the shapes of JSON values: JSON Schema as
// OpenAPI 3.1 has it, written short.
//
// A [Schema] is made by a function ([Text], [Object], [List], …) and the methods that
// follow it at once, and not changed afterwards. One with a name ([Named]) becomes a
// component of the document. Examples are not written beside the shapes but made of
// them: each leaf has one, and an object's is made of its fields', so that an example
// cannot be out of date on its own.
package shape
