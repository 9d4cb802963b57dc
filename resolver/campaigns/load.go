package campaigns

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Load takes back what a checkpoint has, see [feature.State]. Runs come behind campaigns,
// and what they were sent with behind them.
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	switch kind {
	case state.EntityTemplate:
		return true, s.loadTemplate(value)
	case state.EntityCampaign:
		return true, s.loadCampaign(value)
	case state.EntityRun:
		r := new(Run)
		err := json.Unmarshal(value, r)
		s.textBytes += int64(r.ContentBytes) + int64(r.LinkBytes)
		s.runs[strings.Clone(name)] = r
		if x := s.campaigns[name]; x != nil && r.Status == RunWaiting {
			s.wakes.Add(dueset.Item{Due: r.WakeMs, Ordinal: x.Number})
		}
		return true, err
	}
	return false, nil
}

// Open puts in order what was loaded, see [feature.Opener].
func (s *State) Open(uint32) error {
	slices.Sort(s.oneOffs)
	return nil
}

// Freeze hands to the store what has changed and is not there yet.
func (s *State) Freeze() {
	for _, r := range s.dirty {
		if s.runs[r.ID] == r {
			s.put(state.EntityRun, r.ID, must.JSON(r))
		}
		r.dirty = false
	}
	s.dirty = s.dirty[:0]
}

// HashTemplates gives put the templates, which come before the account's sender domains
// in the state's hash.
func (s *State) HashTemplates(put func([]byte)) { hashMap(put, s.templates) }

// Hash gives put the rest of the state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	hashMap(put, s.campaigns)
	hashMap(put, s.runs)
	if err := s.hashTexts(put); err != nil {
		return err
	}
	return s.checkDerived()
}

func hashMap[V any](put func([]byte), entities map[string]V) {
	for _, k := range slices.Sorted(maps.Keys(entities)) {
		put([]byte(k))
		put(must.JSON(entities[k]))
	}
}

// checkDerived says where what follows from the campaigns does not.
func (s *State) checkDerived() error {
	oneOffs, scheduled, due, waiting := 0, 0, 0, 0
	for id, x := range s.campaigns {
		if s.ids[x.Number] != id {
			return fmt.Errorf("the number %d does not lead to the campaign %s", x.Number, id)
		}
		if r := s.runs[id]; r != nil && r.Status == RunWaiting {
			waiting++
		}
		_, isDue := s.due[x.Number]
		if isDue != x.Due {
			return fmt.Errorf("whether the campaign %s is due is not known", id)
		}
		if x.OneOff {
			if _, found := slices.BinarySearch(s.oneOffs, x.Number); !found {
				return fmt.Errorf("the campaign %s is not among those that are one-off", id)
			}
			oneOffs++
		}
		if isDue {
			due++
		} else if x.ScheduledMs != 0 {
			scheduled++
		}
	}
	if s.wakes.Len() != waiting {
		return fmt.Errorf("%d runs of campaigns wait, %d are known to", waiting, s.wakes.Len())
	}
	if len(s.ids) != len(s.campaigns) || len(s.oneOffs) != oneOffs || len(s.due) != due || s.schedules.Len() != scheduled {
		return fmt.Errorf("%d campaigns, of which %d are one-off, %d scheduled and %d due, have %d numbers; %d are known to be one-off, %d scheduled, %d due",
			len(s.campaigns), oneOffs, scheduled, due, len(s.ids), len(s.oneOffs), s.schedules.Len(), len(s.due))
	}
	return nil
}
