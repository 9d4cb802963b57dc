package inapp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// maxEnded bounds the inboxes that one record looks at because something in them ended.
const maxEnded = 200

// hourOf is the hour at whose end messages are looked at that end at an instant.
func hourOf(ms int64) int64 { return (ms + hourMs - 1) / hourMs }

func hourSet(hour int64) string { return setHours + strconv.FormatInt(hour, 10) }

// hourSets are the names of the sets of all hours.
func (s *State) hourSets() (names []string) {
	for _, hour := range s.hours {
		names = append(names, hourSet(hour))
	}
	return names
}

// expiresIn notes that a message of a profile ends at an instant.
func (s *State) expiresIn(ordinal uint32, ms int64) {
	hour := hourOf(ms)
	if i, found := slices.BinarySearch(s.hours, hour); !found {
		s.hours = slices.Insert(s.hours, i, hour)
	}
	s.sets.Set(hourSet(hour)).Add(ordinal)
}

// Advance drops messages whose hour is over, of a bounded number of profiles.
func (s *State) Advance(tx *feature.Tx) {
	left := maxEnded
	for left > 0 && len(s.hours) > 0 && s.hours[0]*hourMs <= tx.AtMs {
		name := hourSet(s.hours[0])
		list := profile.Page(s.sets.Members(name), 0, left)
		for _, o := range list {
			s.sets.Set(name).Remove(o)
			if messages := s.load(o); len(messages) > 0 {
				s.put(tx, o, messages)
			}
		}
		left -= len(list)
		if s.sets.Members(name).IsEmpty() {
			s.host.DropSet(name)
			s.hours = s.hours[1:]
		}
	}
}

// NextDue is when the next hour is over in which a message ends, Unix ms; ok is false where
// there is none.
func (s *State) NextDue() (ms int64, ok bool) {
	if len(s.hours) == 0 {
		return 0, false
	}
	return s.hours[0] * hourMs, true
}

// Open puts in order what was loaded.
func (s *State) Open(uint32) error {
	s.hours = nil
	for name := range s.sets.All() {
		text, is := strings.CutPrefix(name, setHours)
		if !is {
			continue
		}
		hour, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("set %q: %w", name, err)
		}
		s.hours = append(s.hours, hour)
	}
	slices.Sort(s.hours)
	return nil
}
