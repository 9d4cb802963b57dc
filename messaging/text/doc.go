// Package text sends short texts (SMS, WhatsApp, instant messages) over a
// provider's HTTP API.
//
// # Using it
//
// Providers differ in addresses and field names, hardly in anything else, so one
// [Sender] is configured for all: a [Config] says what the request looks like
// and where in the answer the message's id and the error stand. [Twilio] and
// [WhatsAppCloud] are ready-made ones. A Config is plain JSON, so that an account
// can store its own.
//
// The URL, the body, form fields and header values may contain merge tags: {{to}},
// {{from}}, {{body}}, {{id}}, {{media_url}} and {{vars.NAME}}. A JSON body is
// parsed in merge's JSON mode, so that no text leaves its string. Form fields
// that come out empty are left out.
//
// # How a send ends
//
// Config.Codes decides first: it maps the provider's error codes to outcomes.
// Otherwise a 2xx status without an error code (other than 0) is accepted; 401,
// 403, 404 and redirects are refused, for they concern the account or the
// address; 408, 429 and 5xx are temporary with the provider's Retry-After; all
// else is permanent. A request that left in full without an answer is ambiguous:
// providers that know an idempotency key should get {{id}} as such.
//
// # Segments
//
// [Segments] counts how many SMS a text costs: GSM-7 or UCS-2, whole or in parts.
package text
