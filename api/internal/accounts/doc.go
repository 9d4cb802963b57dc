// Package accounts has the calls about access to accounts: sessions, users, API keys,
// companies and the audit log.
//
// A person signs in with a password (session.go), a known device (device.go) or a link
// (signin_link.go). login_throttle.go pauses attempts that fail. E-mails and companies
// are looked up on all nodes of a cluster (peers.go). [Credentials] are what a new
// company is given (credentials.go).
package accounts
