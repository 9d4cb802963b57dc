// Package tracking makes the links of messages that the server itself answers:
// the open pixel, click links, unsubscribe and confirmation links.
//
// Background. A message's links carry a signed token instead of parameters: a
// token says which account's which message was opened or which of its links was
// followed, and cannot be made up or changed. Click links therefore lead only to URLs
// that stand in the message's own link table; they are no open redirect. Messages
// of flows, of which no table is kept, carry the URL in the token, under its seal.
//
// Organisation. Leaf package: no I/O, no clock.
//
//	token.go    Key, Claims, tokens and their URLs
//	rewrite.go  finding the links of an HTML body and taking them out
//	scan.go     the attributes of a tag, merge tags hidden
//	redirect.go where a click may lead
//	pixel.go    the image
//	agent.go    which opens and clicks look like a machine's
//
// Use. When a campaign is prepared, Rewrite splits its HTML once into parts and
// slots, with merge tags still in place, and yields the link table, which is
// stored with the campaign. Per recipient, Rewritten.Append joins the parts with
// URLs made by Key.AppendURL. When a link is requested, Parse returns the claims;
// for a click the stored URL goes through Location.
//
// Invariants, which tests name:
//
//	T1  Parse accepts what Key.Token made, and nothing else
//	T2  Rewrite changes no byte outside the values of the links it tracks and the pixel it adds
//	T3  a click leads only to the scheme and host that the author wrote
package tracking
