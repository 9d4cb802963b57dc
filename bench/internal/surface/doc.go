// Package surface makes calls of every surface of a service that may be killed,
// frozen or cut off meanwhile: again, at whichever node serves, until there is
// an answer.
package surface
