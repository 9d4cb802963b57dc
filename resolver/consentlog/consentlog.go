// Package consentlog keeps the log of consents: what each person said of channels and topics,
// when, and with which evidence.
//
// The document of a profile has the present consent of each channel. The log has what was
// before it, and the evidence. A first consent without evidence is not written to the log until
// another takes its place: the document says all of it. So a contact that never changes
// anything costs nothing here, and consents of before there was a log are not lost.
//
// The entries of a profile are one text in the store, and not kept in memory. A set of the
// account has the profiles that have one.
package consentlog

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

const (
	// MaxEntries is how many entries are kept of a profile, more than there are channels. The
	// oldest go first, but not the newest one of a channel, and of a topic only where there is
	// nothing else.
	MaxEntries = 100

	setLogged    = "consent_log" // profiles that have entries
	textConsents = 's'           // kind of the texts; the id is the ordinal
)

// Entry is one thing that a person said.
type Entry struct {
	AtMs int64 `json:"at_ms"` // log time
	// Channel is what it is about, or List, the id of a topic's list, with the name that the
	// topic had.
	Channel string `json:"channel,omitempty"`
	List    string `json:"list_id,omitempty"`
	Name    string `json:"name,omitempty"`
	Status  string `json:"status"` // subscribed or unsubscribed
	Source  string `json:"source,omitempty"`
	profile.Evidence
	// Pending says of the newest consent to a channel that the person has yet to confirm it
	// (double opt-in). It follows from the profile's document and is not stored.
	Pending bool `json:"-"`
}

// subscribed is the status of a consent.
var subscribed = profile.NameOf(profile.ConsentStatuses, profile.ConsentSubscribed)

// same reports whether two entries are of one saying.
func (x *Entry) same(y *Entry) bool {
	return x.AtMs == y.AtMs && x.about(y) && x.Status == y.Status && x.Source == y.Source
}

// about reports whether two entries are about the same channel or topic.
func (x *Entry) about(y *Entry) bool { return x.Channel == y.Channel && x.List == y.List }

// State is the log of consents of an account.
type State struct {
	account uint64
	store   *state.Store
	sets    *profile.OrdinalSets
}

// New returns the log of an account, whose sets are given.
func New(account uint64, store *state.Store, sets *profile.OrdinalSets) *State {
	return &State{account: account, store: store, sets: sets}
}

// key is where the entries of a profile are.
func (s *State) key(ordinal uint32) string {
	return state.TextKey(s.account, textConsents, string(binary.BigEndian.AppendUint32(nil, ordinal)))
}

// stored are the entries of a profile that are in the store, the oldest first.
func (s *State) stored(ordinal uint32) (out []Entry, err error) {
	if !s.sets.Members(setLogged).Contains(ordinal) {
		return nil, nil
	}
	b, err := s.store.Entity(s.key(ordinal))
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("log of consents of profile %d: %w", ordinal, err)
	}
	return out, nil
}

// Add takes over the changes of a document that is being stored.
func (s *State) Add(ordinal uint32, changes []profile.ConsentChange) error {
	log, err := s.stored(ordinal)
	if err != nil {
		return err
	}
	before := slices.Clone(log)
	for i := range changes {
		c := &changes[i]
		if was := entryOf(&c.Was, c); was.Status != "" {
			was.Evidence = profile.Evidence{}
			log = with(log, was)
		}
		now := entryOf(&c.Now, c)
		if now.Status != "" && (c.List != "" || c.Was.Status != 0 || c.Evidence != profile.Evidence{}) {
			log = with(log, now)
		}
	}
	if !slices.Equal(log, before) {
		s.put(ordinal, log)
	}
	return nil
}

// entryOf is the entry of one side of a change, without a status where there is none.
func entryOf(c *profile.Consent, of *profile.ConsentChange) Entry {
	x := Entry{AtMs: c.SinceMs, List: of.List, Name: of.Name, Source: string(c.Source), Evidence: of.Evidence}
	if c.Status != 0 {
		x.Status = profile.NameOf(profile.ConsentStatuses, c.Status)
	}
	if of.List == "" {
		x.Channel = profile.NameOf(profile.Channels, c.Channel)
	}
	return x
}

// with is a log with an entry in its place by time. One that is there already is not added
// again, but gets the evidence if it has none.
func with(log []Entry, x Entry) []Entry {
	if i := slices.IndexFunc(log, func(y Entry) bool { return x.same(&y) }); i >= 0 {
		if log[i].Evidence == (profile.Evidence{}) {
			log[i].Evidence = x.Evidence
		}
		return log
	}
	at, _ := slices.BinarySearchFunc(log, x.AtMs+1, func(y Entry, ms int64) int { return cmp.Compare(y.AtMs, ms) })
	return slices.Insert(log, at, x)
}

// put stores the entries of a profile, as many as are kept.
func (s *State) put(ordinal uint32, log []Entry) {
	for len(log) > MaxEntries {
		i := slices.IndexFunc(log, func(x Entry) bool {
			newest := slices.IndexFunc(log, func(y Entry) bool { return y.about(&x) && y.AtMs > x.AtMs })
			return newest >= 0
		})
		if i < 0 { // there are more topics than entries
			i = slices.IndexFunc(log, func(x Entry) bool { return x.List != "" })
		}
		log = slices.Delete(log, i, i+1)
	}
	s.store.PutPayload(s.key(ordinal), must.JSON(log))
	s.sets.Set(setLogged).Add(ordinal)
}

// Entries lists what a person said of channels and topics, the newest first. d is the
// profile's document.
func (s *State) Entries(ordinal uint32, d *profile.Document) ([]Entry, error) {
	log, err := s.stored(ordinal)
	if err != nil {
		return nil, err
	}
	for i := range d.Consents {
		if x := entryOf(&d.Consents[i], &profile.ConsentChange{}); x.Status != "" {
			log = with(log, x)
		}
	}
	slices.Reverse(log)
	for i, name := range profile.Channels {
		if !d.Pending(byte(i)) {
			continue
		}
		if newest := slices.IndexFunc(log, func(x Entry) bool { return x.Channel == name }); newest >= 0 && log[newest].Status == subscribed {
			log[newest].Pending = true
		}
	}
	return log, nil
}

// Keys are where the entries of profiles are, for what is to leave the store's files.
func (s *State) Keys(ordinals ...uint32) (keys []string) {
	for _, o := range ordinals {
		keys = append(keys, s.key(o))
	}
	return keys
}

// Merge makes the entries of a merged profile the winner's, see [feature.Merger].
func (s *State) Merge(_ *feature.Tx, winner, merged uint32) {
	log, err := s.stored(merged)
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if len(log) == 0 {
		return
	}
	all, err := s.stored(winner)
	if err != nil {
		panic(err) // likewise
	}
	for _, x := range log {
		all = with(all, x)
	}
	s.put(winner, all)
	s.store.PutPayload(s.key(merged), nil)
	s.sets.Set(setLogged).Remove(merged)
}

// Erase removes erased profiles, see [feature.Eraser].
func (s *State) Erase(_ *feature.Tx, ordinals ...uint32) error {
	for _, o := range ordinals {
		s.store.PutEntity(s.key(o), nil)
		if logged := s.sets.Find(setLogged); logged != nil {
			logged.Remove(o)
		}
	}
	return nil
}

// Load takes back nothing, see [feature.State]: texts stay in the store.
func (s *State) Load(byte, string, []byte) (known bool, err error) { return false, nil }

// Hash gives put the entries of all profiles, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	for it := s.sets.Members(setLogged).Iterator(); it.HasNext(); {
		o := it.Next()
		b, err := s.store.Entity(s.key(o))
		if err != nil {
			return err
		}
		if b == nil {
			return fmt.Errorf("profile %d has no log of consents, and is among those that have one", o)
		}
		put(binary.BigEndian.AppendUint32(nil, o))
		put(b)
	}
	return nil
}
