package contacts

import (
	"cmp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// A topic is a list that people see on their preference page, under a public name. A person
// who leaves a topic there is kept off its list until they join it again, whatever the
// account, an import or a flow does meanwhile. A set for each list has those people; it stays
// when the list is no longer public.

const (
	// MaxTopics is how many lists of an account are, or were, public.
	MaxTopics           = 100
	maxTopicName        = 200  // bytes
	maxTopicDescription = 1000 // bytes
)

// Topic is a list as people see it.
type Topic struct {
	Public            bool   `json:"public"`
	PublicName        string `json:"public_name"`
	PublicDescription string `json:"public_description"`
}

// TopicSave changes what people see of a list; what is left out stays as it is.
type TopicSave struct {
	Public            *bool   `json:"public,omitempty"`
	PublicName        *string `json:"public_name,omitempty"`
	PublicDescription *string `json:"public_description,omitempty"`
}

// given reports whether anything is to be changed.
func (c *TopicSave) given() bool {
	return c.Public != nil || c.PublicName != nil || c.PublicDescription != nil
}

// change is a topic with the changes made, nil where a list has none and gets none.
func (c *TopicSave) change(old *Topic) (*Topic, *refuse.Refusal) {
	if !c.given() {
		return old, nil
	}
	var t Topic
	if old != nil {
		t = *old
	}
	t.Public = *cmp.Or(c.Public, &t.Public)
	t.PublicName = *cmp.Or(c.PublicName, &t.PublicName)
	t.PublicDescription = *cmp.Or(c.PublicDescription, &t.PublicDescription)
	switch {
	case len(t.PublicName) > maxTopicName || !utf8.ValidString(t.PublicName):
		return nil, refuse.Invalid("public_name", "public_name must have at most %d bytes of UTF-8", maxTopicName)
	case t.Public && t.PublicName == "":
		return nil, refuse.Invalid("public_name", "public_name is missing; people see it on their preference page where public is true")
	case len(t.PublicDescription) > maxTopicDescription || !utf8.ValidString(t.PublicDescription):
		return nil, refuse.Invalid("public_description", "public_description must have at most %d bytes of UTF-8", maxTopicDescription)
	case old == nil && t == Topic{}:
		return nil, nil
	}
	return &t, nil
}

// leftSet names the set of those who left a topic on their preference page.
func leftSet(number uint32) string { return "left/" + strconv.FormatUint(uint64(number), 10) }

// HasLeft reports whether a profile left the list's topic on its preference page.
func (s *State) HasLeft(ordinal uint32, l *List) bool {
	return l.Topic != nil && s.sets.Members(leftSet(l.Number)).Contains(ordinal)
}

// LeftTopic refuses to put a contact on a list that they left on the preference
// page.
func LeftTopic() *refuse.Refusal {
	return &refuse.Refusal{Code: "conflict", Field: "list_id", Message: "list_id: the contact left this list on the preference page; only the contact can join it again"}
}

// Topics lists the lists that are public, the oldest first.
func (s *State) Topics() (out []List) {
	for _, l := range s.topics {
		if l.Public {
			out = append(out, *l)
		}
	}
	slices.SortFunc(out, func(x, y List) int { return cmp.Compare(x.Number, y.Number) })
	return out
}

// LeaveMerged takes a document off the lists whose topics one of the profiles left that
// became part of it.
func (s *State) LeaveMerged(d *profile.Document, ordinals ...uint32) {
	d.Lists = slices.DeleteFunc(d.Lists, func(n uint32) bool {
		l := s.topics[n]
		return l != nil && slices.ContainsFunc(ordinals, func(o uint32) bool { return s.HasLeft(o, l) })
	})
}

// mergeLeft makes the topics that a merged profile left the winner's, and takes the winner
// off their lists.
func (s *State) mergeLeft(winner, merged uint32) {
	for n := range s.topics {
		left := s.sets.Find(leftSet(n))
		if left == nil {
			continue
		}
		if left.Remove(merged) {
			left.Add(winner)
		}
		if left.Bits.Contains(winner) {
			s.sets.Set(ListSet(n)).Remove(winner)
		}
	}
}

// JoinTopic puts a profile on the list of a topic because the person says so, and notes that
// for the log of consents. It returns the events of it.
func (s *State) JoinTopic(atMs int64, o uint32, d *profile.Document, l *List, source string) ([]feature.Event, *refuse.Refusal) {
	had := s.HasLeft(o, l)
	if had {
		s.sets.Set(leftSet(l.Number)).Remove(o)
	}
	events, refusal := s.Join(o, d, l)
	if refusal != nil {
		s.sets.Set(leftSet(l.Number)).Put(o, had)
		return nil, refusal
	}
	if had || len(events) > 0 {
		noteTopic(atMs, d, l, profile.ConsentSubscribed, source)
	}
	return events, nil
}

// LeaveTopic takes a profile off the list of a topic because the person says so, and keeps it
// off. It returns the events of it.
func (s *State) LeaveTopic(atMs int64, o uint32, d *profile.Document, l *List, source string) []feature.Event {
	fresh := s.sets.Set(leftSet(l.Number)).Add(o)
	events := s.leave(o, d, l)
	if fresh || len(events) > 0 {
		noteTopic(atMs, d, l, profile.ConsentUnsubscribed, source)
	}
	return events
}

func noteTopic(atMs int64, d *profile.Document, l *List, status byte, source string) {
	d.NoteConsent(profile.ConsentChange{List: l.ID, Name: l.PublicName, Now: profile.Consent{Status: status, SinceMs: atMs, Source: []byte(source)}})
}
