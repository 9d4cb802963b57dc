package campaigns

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Kinds of texts, the byte behind the account in a text's key.
const (
	textCampaign = 'c' // body of a campaign
	textTemplate = 'm' // texts of a template, see templateTexts
	textContent  = 'y' // what a campaign is being sent with: a list of contents
	textLinks    = 'k' // click targets of what it was sent with: a list for each variant
)

// roomForText says whether the account's texts may become so much longer, in
// bytes; less is always possible.
func (s *State) roomForText(field string, longer int) *refuse.Refusal {
	if longer <= 0 || s.textBytes+int64(longer) <= s.shared.MaxTextBytes {
		return nil
	}
	return refuse.AtLimit(field, "%s: the texts of this account's campaigns and templates would have %d bytes, the most they can have is %d; delete or shorten some first",
		field, s.textBytes+int64(longer), s.shared.MaxTextBytes)
}

// putText stores a text in place of one with so many bytes, and returns how many
// it has. An empty one removes it.
func (s *State) putText(kind byte, id string, old int, text []byte) int {
	s.textBytes += int64(len(text) - old)
	switch key := state.TextKey(s.account, kind, id); {
	case len(text) > 0:
		s.shared.Store.PutPayload(key, text)
	case old > 0:
		s.shared.Store.PutEntity(key, nil)
	}
	return len(text)
}

// text reads a text, empty if there is none.
func (s *State) text(kind byte, id string) ([]byte, error) {
	return s.shared.Store.Entity(state.TextKey(s.account, kind, id))
}

// readText decodes a text that is JSON. One that is not there leaves v as it is.
func (s *State) readText(kind byte, id string, v any) error {
	b, err := s.text(kind, id)
	if err != nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("text %c of %s: %w", kind, id, err)
	}
	return nil
}

// TextBytes is the length of all texts, in bytes.
func (s *State) TextBytes() int64 { return s.textBytes }

// hashTexts is the texts' part of the state's hash.
func (s *State) hashTexts(put func([]byte)) error {
	read := func(kind byte, id string) error {
		b, err := s.text(kind, id)
		if len(b) > 0 {
			put(append([]byte{kind}, id...))
			put(b)
		}
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(s.campaigns)) {
		for _, kind := range [...]byte{textCampaign, textContent, textLinks} {
			if err := read(kind, id); err != nil {
				return err
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.templates)) {
		if err := read(textTemplate, id); err != nil {
			return err
		}
	}
	put(fmt.Appendf(nil, "%d bytes of texts", s.textBytes))
	return nil
}
