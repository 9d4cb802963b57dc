// Package messages has what single messages are made of, for the state machine and for the
// dispatcher: the ids that links and headers carry (id.go), the payloads of items of the
// outbox, and the commands that queue messages and report what became of them. It keeps no
// state.
package messages
