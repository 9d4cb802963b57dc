package segment

// Facts is what conditions other than activity look at.
type Facts struct {
	Fields       Fields
	Consents     []ConsentFact     // at most one for a channel
	Suppressions []SuppressionFact // at most one for a channel
	Lists        []string          // ids of the lists the profile is on
}

// SuppressionFact says why a channel is not sent to, whatever the consent.
type SuppressionFact struct {
	Channel string
	Reason  string // one of [SuppressionPending] and its kin
}

// ConsentFact is the consent of one channel.
type ConsentFact struct {
	Channel string
	Status  string
	// SubscribedMs is the date of the last subscription in Unix milliseconds,
	// when HasDate is set.
	SubscribedMs int64
	HasDate      bool
}

// Holds reports whether the positive form (see [Node.Negated]) of an attribute,
// consent or list leaf holds at atMs. It is false for other leaves.
func (f *Facts) Holds(leaf *Node, atMs int64) bool {
	switch leaf.Kind {
	case KindAttribute:
		return leaf.Attribute.Match(f, atMs)
	case KindConsent:
		return leaf.Consent.Match(f)
	case KindList:
		for _, id := range f.Lists {
			if id == leaf.List.ListID {
				return true
			}
		}
	}
	return false
}
