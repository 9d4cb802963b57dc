// Package cli reads a command's flags from its arguments and its environment.
//
// Every flag --some-name also reads MUSTER_SOME_NAME; a flag that is given
// wins. Flags may stand before and behind other arguments.
package cli
