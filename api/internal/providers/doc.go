// Package providers has the calls about providers of messages: the keys to push services and text providers,
// and what providers report.
//
// The keys are stored as credentials and never shown again (credential_operations.go). A
// report is authenticated in the way of its provider, read by messaging/inbound, and
// recorded (reports.go); texts that people write become events (texts.go).
package providers
