// Package email builds, signs and sends e-mails over SMTP.
//
// # The pieces
//
// A [Message] is one e-mail to one recipient, complete with its Message-ID and
// date: building it twice gives the same bytes, so that a repeat after a crash
// is recognised by receivers. [Key] signs for a sender domain (DKIM, rsa-sha256
// and ed25519-sha256, [GenerateKeys]), [Verifier] checks that the domain
// publishes what we gave it ([DomainSetup.Records]). [Sender] hands messages to
// a relay.
//
// # Why go-mail builds and go-smtp's client sends
//
// go-mail's Msg writes correct MIME (alternatives, quoted-printable, RFC 2047).
// Its client sends batches: it reports one error for a message, cannot tell a
// connection lost before the final dot from one lost after it, and dials again
// per batch. A campaign needs each of these, so the sender drives go-smtp's
// protocol client command by command over a pool of its own.
//
// # How a send ends
//
// [Sender.Send] answers with an outcome.Result. The stage decides as much as
// the code:
//
//	stage                       4xx         5xx
//	connect, TLS, AUTH          temporary   refused
//	MAIL FROM                   temporary   refused; too large: permanent
//	RCPT TO                     temporary   permanent; authentication wanted: refused
//	DATA, answer to the dot     temporary   permanent
//	network, before the dot     temporary
//	network, after the dot      ambiguous
//
// A permanent result is Hard when the address itself is dead: status 5.1.x
// (other than of the sender), 5.2.1, or 550, 551 and 553 to RCPT without a more
// precise status. On a connection that had been used before, a failure ahead of
// DATA is tried once more on a new one, because relays close connections
// whenever they like.
//
// # Bounds
//
// Options.Connections at most are open; further calls wait for one until their
// context ends. A message is at most MaxMessage bytes, an answer 64 KiB, each
// command and the whole of a send have deadlines.
package email
