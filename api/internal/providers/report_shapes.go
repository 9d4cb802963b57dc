package providers

import "github.com/musterhq/muster/api/shape"

var inboundEventShape = shape.Named("InboundEvent", shape.Object(
	shape.Req("type", shape.Word("", "bounce", "complaint", "delivery", "open", "click", "unsubscribe", "failure", "reply")),
	shape.Opt("send_id", shape.Text("3f9a7c2e5d1b8046-02000000000000002a00000019c41f7e", "The message; this, `message_id` or `recipient` must be given.")),
	shape.Opt("message_id", shape.Text("<3f9a7c2e5d1b8046.02000000000000002a00000019c41f7e@muster.local>", "The message, by its Message-ID.")),
	shape.Opt("recipient", shape.Text("ann@example.com", "The address.")),
	shape.Opt("hard", shape.Boolean(false, "Of a bounce or failure: whether it is for good.")),
	shape.Opt("status", shape.Text("5.1.1", "Of a bounce: the enhanced status code.")),
	shape.Opt("reason", shape.Text("no such user", "Of a bounce.")),
	shape.Opt("channel", shape.Word("Of a reply.", "sms", "whatsapp", "im")), shape.Opt("from", shape.Text("+491701234567", "Of a reply: who wrote.")), shape.Opt("to", shape.Text("+4930123456", "Of a reply: the number that they wrote to.")), shape.Opt("text", shape.Text("STOP", "Of a reply. `STOP`, `START` and `HELP` are acted on.")),
	shape.Opt("url", shape.Text("https://example.com/sale", "Of a click.")),
	shape.Opt("user_agent", shape.Text("Mozilla/5.0", "Of opens and clicks.")), shape.Opt("ip", shape.Text("192.0.2.7", "Of opens and clicks.")), shape.Opt("machine", shape.Boolean(false, "Whether a machine opened or clicked ahead.")),
	shape.Opt("timestamp", shape.Moment("2026-01-31T09:00:00Z", "RFC 3339, or Unix milliseconds.")),
	shape.Opt("id", shape.Text("evt-1", "Makes a repeat harmless; left out, the content does.")),
))
