// Package outcome says how an attempt to send one message ended, in the same
// words for every channel.
//
// # Background
//
// SMTP servers, push services and SMS providers answer in their own codes. A
// dispatcher needs to know one thing: what to do next with this message and
// this recipient. Each sender therefore sorts the answers it knows into a
// [Class] and keeps the provider's own code and words beside it for people.
//
//	class      meaning                                        what follows
//	accepted   the provider took responsibility               record it
//	permanent  this message to this recipient never succeeds  record it; Hard also marks the address dead
//	temporary  may succeed later, nothing was delivered       try again, not before RetryAfter
//	refused    our credentials or sender are not accepted     stop: every other recipient fails alike
//	ambiguous  sent in full, but the answer was lost          it may have arrived; a repeat may be the second copy
//	retired    the device token is dead                       remove the token
//
// A [Result] is a value: it crosses the log and the console as it is.
package outcome
