// Package messages has the calls about campaigns, templates, captured messages, webhooks and their deliveries.
package messages
