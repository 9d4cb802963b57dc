package messages

// CommandOutboxDone reports what became of an item of the outbox.
const CommandOutboxDone = "outbox.done.2"

// The names of the commands that report what became of messages, in logs of before their
// events had the recipient's domain. Those events still have none.
const (
	CommandEngagement1 = "engagement.record"
	CommandOutboxDone1 = "outbox.done"
)

// CommandEngagement records what the recipient did with a message, or what became
// of it later.
const CommandEngagement = "engagement.record.2"

// The kinds of engagement.
const (
	EngagementOpen         = "open"
	EngagementClick        = "click"
	EngagementDelivery     = "delivery"
	EngagementBounce       = "bounce"
	EngagementSoftBounce   = "soft_bounce"
	EngagementComplaint    = "complaint"
	EngagementUnsubscribed = "unsubscribe"
	EngagementSubscribed   = "subscribe" // a text that asks for messages again
	EngagementFailed       = "failure"   // a text that was handed over and not delivered
)

// The agents that opened or clicked, as far as can be told. What no person did is
// an event, but counts for no rate, score or status.
const (
	AgentPerson   = "person"
	AgentProxy    = "proxy" // of a mail service, for a person
	AgentPrefetch = "prefetch"
	AgentMachine  = "machine"
)

// EngagementRecord says what a recipient did with a message.
type EngagementRecord struct {
	Send ID `json:"send"`
	// Profile is whom it concerns when Send is zero.
	Profile string `json:"profile,omitempty"`
	Channel string `json:"channel"`
	Kind    string `json:"kind"`
	Link    int    `json:"link,omitempty"` // number of the link, for a click
	URL     string `json:"url,omitempty"`  // where it leads
	Agent   string `json:"agent,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Source  string `json:"source,omitempty"`
	// Hard says of a failure that the number gets no messages, ever.
	Hard bool `json:"hard,omitempty"`
	// Flow and Step say which step of which flow sent the message: its links carry
	// them, since nothing remembers it once it has gone out.
	Flow string `json:"flow,omitempty"`
	Step string `json:"step,omitempty"`
	// Key makes a repeat harmless: the provider's own id of the report.
	Key string `json:"key,omitempty"`
	// WrittenMs is when a text that asks for messages again was written (Unix ms), 0 if its
	// provider does not say. It is refused if the person unsubscribed after that.
	WrittenMs int64 `json:"written_ms,omitempty"`
}

// PropertyDomain is the property of the events of e-mails that has the domain of the
// recipient's address, in lower case.
const PropertyDomain = "domain"
