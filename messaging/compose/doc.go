// Package compose says what messages are made of. It checks the texts that authors write,
// prepares them for the state machine, and makes the message of one recipient.
//
// # Background
//
// A [campaigns.Content] has the texts, addresses and options of a message, with merge tags.
// Requests and starts of campaigns have it checked and prepared; the dispatcher and the
// outbox of package messaging compile it once ([Compile]) and render it for each recipient.
// This package reads the state, through [resolver.View]. It sends nothing, changes nothing,
// and knows neither the node, nor the runs of campaigns, nor the outbox.
//
// # How it is organised
//
//   - content.go checks and compiles contents; links are taken out for tracking.
//     campaign_content.go does so for campaigns, push_content.go, inapp_content.go and
//     mail_content.go for their kinds of messages.
//   - tags.go and tags_flow.go say which merge tags a text may have, holes.go to whom a
//     message is not sent since a merge tag has no value.
//   - text_links.go finds links in texts without markup, kept_links.go numbers links so
//     that those of messages sent before lead where they led.
//   - provider_limits.go finds texts that the account's providers never take.
//   - render.go makes the message of one recipient, preview.go shows it without sending.
//   - track.go makes ids that cannot be guessed, and says where clicks lead.
package compose
