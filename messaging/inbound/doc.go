// Package inbound reads what comes back about messages: bounces, complaints,
// deliveries, opens, clicks and unsubscribes, as mail or as providers' webhooks.
//
// Background. The same fact arrives in many shapes: as a delivery status report
// (RFC 3464), as a bounce in prose, as a complaint (RFC 5965), as a mail to an
// unsubscribe address, or as JSON in a provider's own words. Each reader here
// yields the same Event, whose ID is the same however often the provider reports
// it, so that the caller can record it once.
//
// Organisation. Leaf package. Clocks and fetchers are arguments.
//
//	event.go      Event and its types
//	mail.go       ParseMail: which kind of mail is it
//	mime.go       a reader of MIME that takes whatever comes, within bounds
//	dsn.go        delivery status reports
//	prose.go      bounces without a report
//	status.go     which failures are for good
//	arf.go        complaints, and mails to the unsubscribe address
//	provider.go   what providers' webhooks have in common
//	generic.go    a webhook of our own definition
//	sns.go ses.go sendgrid.go mailgun.go postmark.go twilio.go whatsapp.go
//	keyword.go  STOP, START and HELP
//	whatsapp_number.go  numbers that WhatsApp writes in another form
//
// Trust. A webhook is authenticated before it is read. Mail is not: anyone can
// write a bounce. ParseMail therefore only claims; the caller acts on a claim when SendID
// or MessageID names a message that was sent (both are unguessable to third
// parties) or Token verifies, takes the recipient from that message, and ignores claims
// that bring only an address.
//
// Invariants, which tests name:
//
//	I1  no input makes a reader panic, or take time or memory out of proportion to it
//	I2  the same delivery of a fact yields the same IDs, two facts different ones
//	I3  a webhook that is not signed with the account's secret yields no events
package inbound
