// Package surface makes calls of every surface of a service. A [Client] from
// [SignIn] makes each call once, which is what a measurement wants. Other clients are
// for services that may be killed, frozen or cut off meanwhile: they call again, at
// whichever node serves, until there is an answer.
package surface
