package record

import "github.com/musterhq/muster/resolver"

// ConsentEntry is one thing that a person said of a channel or topic. What is not known is
// null.
type ConsentEntry struct {
	At      string  `json:"at"`
	Channel *string `json:"channel"`
	ListID  *string `json:"list_id"`
	Topic   *string `json:"topic"` // the name that the list had
	Status  string  `json:"status"`
	// Pending says that the person has yet to confirm the consent (double opt-in).
	Pending    bool    `json:"pending"`
	Source     string  `json:"source"`
	MessageID  *string `json:"message_id"`
	CampaignID *string `json:"campaign_id"`
	FlowID     *string `json:"flow_id"`
	StepID     *string `json:"step_id"`
	Client     *string `json:"client"`
	Wording    *string `json:"wording"`
	FormID     *string `json:"form_id"`
	// SubmittedAt is when the form was sent that was confirmed later.
	SubmittedAt *string `json:"submitted_at"`
}

// ConsentLog is a person's consents and refusals of channels and topics, the newest
// first.
func ConsentLog(v *resolver.View, ordinal uint32) ([]ConsentEntry, error) {
	log, err := v.Profiles().ConsentLog(ordinal)
	out := make([]ConsentEntry, 0, len(log))
	for _, x := range log {
		out = append(out, ConsentEntry{Time(x.AtMs), TextOrNull(x.Channel), TextOrNull(x.List), TextOrNull(x.Name), x.Status, x.Pending, x.Source,
			TextOrNull(x.Message), TextOrNull(x.Campaign), TextOrNull(x.Flow), TextOrNull(x.Step), TextOrNull(x.Client), TextOrNull(x.Wording), TextOrNull(x.Form), TimeOrNull(x.SubmittedMs)})
	}
	return out, err
}
