// Package whatsapp has what Muster says of a template that WhatsApp has approved: its name
// and the values of its placeholders. Campaigns and steps of flows store a [Template] with merge
// tags in the values; what goes to the provider is one whose tags are filled in.
//
// Which placeholders a template has is known to WhatsApp alone. [Template.CheckOptions] finds
// what no template can have. What a provider takes is known to package text, which sends it.
package whatsapp
