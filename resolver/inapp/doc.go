// Package inapp has the in-app messages of an account: an inbox for each person, and how pages
// prove for whom they ask.
//
// # Inboxes
//
// An inbox has the newest [MaxMessages] messages of a person, and at most [MaxBytes] of them.
// It is one text in the store, and not kept in memory; a set of the account has the profiles
// that have one. A message is put there by the record that says that it was sent, so that it
// is there once however often it was tried (campaigns and the outbox report each message once).
// Of the messages of one campaign, or of one item of the outbox, an inbox has one.
//
// Messages end. What has ended is left out by readers at once. It leaves the store with the
// next change of the inbox, or some time after the hour in which it ended: a set for each hour
// has the profiles of which something ends in it (expiry.go).
//
// # Tokens
//
// A page of the customer's shows the inbox of the person who signed in there. The customer's
// server says who that is, by a token that it signs with a secret of the account. To verify
// the signature the service needs the secret itself, so it is in the state as it is, as are
// credentials for other services: never logged, and shown once, when it is made (secrets.go).
package inapp
