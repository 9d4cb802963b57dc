// Package history reads the file of the embedded history, after the server has
// stopped, with SQL of its own: what a bench checks must not go through the
// code it checks. It knows one table, whose columns docs/formats.md describes.
package history
