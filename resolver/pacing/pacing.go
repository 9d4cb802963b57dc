// Package pacing decides when a message may go out: quiet hours, frequency caps, and the time
// zones that both follow. Campaigns and flows ask [State.Ask] before they claim a message, and
// call [State.Count] for the claim; whatever else sends messages that people did not ask for
// is to do the same. Messages that are exempt, such as those of single sends, neither ask nor
// count.
//
// # What is kept
//
// Of each person, the messages that were claimed within the longest window of the account's
// caps: when, on which channel, and the message's number, so that one that was not sent after
// all is taken back. That is at most [MaxMessages] of each channel, the newest, and 17 bytes
// each. An account without caps adds none;
// what it had stays until a cap is set again or the person is erased.
//
// The messages of a profile are one text in the store, and not kept in memory. A set of the
// account has the profiles that have one. A merge adds up, an erasure removes. Each claim looks
// at another profile too, and drops its text if all of it is older than the window.
package pacing

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/localtime"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/internal/zones"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The reasons for which people are passed over, in statistics.
const (
	ReasonQuietHours   = "quiet_hours"
	ReasonFrequencyCap = "frequency_cap"
)

const (
	setCounted  = "messages_counted" // profiles that have messages
	textCounted = 'n'                // kind of the texts; the id is the ordinal

	entryVersion = 1
	entryBytes   = 8 + 1 + 8
	// maxKept bounds the text of a profile.
	maxKept = MaxMessages * len(Channels)
)

// MessageID tells the messages to one person apart.
type MessageID uint64

// OfCampaign is the message of the campaign with a number.
func OfCampaign(number uint32) MessageID { return 1<<63 | MessageID(number) }

// OfItem is a message of the outbox, by the name of its item: the offset behind the record that
// queued it, and how many that record had queued for the person before.
func OfItem(queued int64, nth uint32) MessageID {
	return MessageID(queued)<<12&(1<<63-1) | MessageID(nth&(1<<12-1))
}

// Decision is what becomes of a message now. Without either it may go out.
type Decision struct {
	// UntilMs is when the message is to be judged again, Unix ms; 0 for not at all.
	UntilMs int64
	// Reason is why it is not sent, "" for no reason.
	Reason string
}

// entry is a message that was claimed.
type entry struct {
	atMs    int64 // log time
	channel byte  // its place in Channels
	id      MessageID
}

// State is the limits of an account and the messages that count for them.
type State struct {
	account uint64
	store   *state.Store
	sets    *profile.OrdinalSets
	rules   rules
}

// New returns the state of an account without limits, whose sets are given.
func New(account uint64, store *state.Store, sets *profile.OrdinalSets) *State {
	return &State{account: account, store: store, sets: sets, rules: newRules(nil)}
}

// Configure sets the limits, which were checked; nil for none.
func (s *State) Configure(l *Limits) { s.rules = newRules(l) }

// Limited reports whether there are limits that [State.Ask] looks at.
func (s *State) Limited() bool { return s.rules.quiet != nil || len(s.rules.caps) > 0 }

// zonePath is where a profile says its time zone.
var zonePath = []string{"timezone"}

// Zone is the time zone of a person: geo.timezone, attributes.timezone, or the account's where
// neither is the name of a zone.
func (s *State) Zone(d *profile.Document) *time.Location {
	var buf [64]byte
	for _, object := range [...][]byte{d.Geo, d.Attributes} {
		if raw, ok := rawjson.Lookup(object, zonePath); ok {
			if name, ok := rawjson.Text(raw, buf[:0]); ok {
				if z, ok := zones.Load(string(name)); ok {
					return z
				}
			}
		}
	}
	return s.rules.zone
}

// Local is the first instant at which a person's clocks show a time, or a later one. Both are
// Unix ms, the time as if it was of UTC; it has whole seconds.
func (s *State) Local(d *profile.Document, wallMs int64) int64 { return Instant(s.Zone(d), wallMs) }

// AccountLocal is as Local, by the account's clocks.
func (s *State) AccountLocal(wallMs int64) int64 { return Instant(s.rules.zone, wallMs) }

// Instant is the first instant at which clocks in a zone show a time or a later one, see
// [State.Local].
func Instant(zone *time.Location, wallMs int64) int64 {
	const dayMs = 24 * hourMs
	day := wallMs / dayMs
	if wallMs%dayMs < 0 {
		day--
	}
	return localtime.Instant(zone, int(day), int((wallMs-day*dayMs)/1000))
}

// Ask judges a message to a person on a channel. Quiet hours come first: a message that waits
// is judged again when they end. A message that was counted already is not capped by itself.
func (s *State) Ask(nowMs int64, ordinal uint32, d *profile.Document, channel string, id MessageID) (Decision, error) {
	i := slices.Index(Channels[:], channel)
	if i < 0 {
		return Decision{}, nil
	}
	if q := s.rules.quiet; q != nil && q.channels[i] {
		if until := q.until(s.Zone(d), nowMs); until != 0 {
			if q.skips {
				return Decision{Reason: ReasonQuietHours}, nil
			}
			return Decision{UntilMs: until}, nil
		}
	}
	if !s.rules.counted[i] {
		return Decision{}, nil
	}
	list, err := s.stored(ordinal)
	if err != nil {
		return Decision{}, err
	}
	list = without(list, id)
	for _, c := range s.rules.caps {
		if c.channel >= 0 && c.channel != i {
			continue
		}
		n := 0
		for _, x := range list {
			if x.atMs > nowMs-c.windowMs && (c.channel < 0 || int(x.channel) == c.channel) {
				n++
			}
		}
		if n >= c.messages {
			return Decision{Reason: ReasonFrequencyCap}, nil
		}
	}
	return Decision{}, nil
}

// Count notes that a message to a person was claimed. One that counts already counts from now
// on, once.
func (s *State) Count(nowMs int64, ordinal uint32, channel string, id MessageID) error {
	i := slices.Index(Channels[:], channel)
	if i < 0 || !s.rules.counted[i] {
		return s.Uncount(ordinal, id) // on another channel it may have counted
	}
	list, err := s.stored(ordinal)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(without(list, id), func(x entry) bool { return x.atMs <= nowMs-s.rules.longestMs })
	s.put(ordinal, append(list, entry{nowMs, byte(i), id}))
	return s.sweep(nowMs, ordinal)
}

// sweep drops what is kept of the next profile if none of it counts any more.
func (s *State) sweep(nowMs int64, after uint32) error {
	next := s.sets.Members(setCounted).Iterator()
	next.AdvanceIfNeeded(after + 1)
	if !next.HasNext() {
		if next = s.sets.Members(setCounted).Iterator(); !next.HasNext() {
			return nil
		}
	}
	o := next.Next()
	list, err := s.stored(o)
	if err == nil && !slices.ContainsFunc(list, func(x entry) bool { return x.atMs > nowMs-s.rules.longestMs }) {
		s.drop(o)
	}
	return err
}

// Uncount takes a message back that has not gone out.
func (s *State) Uncount(ordinal uint32, id MessageID) error {
	list, err := s.stored(ordinal)
	if err != nil {
		return err
	}
	if n := len(list); len(without(list, id)) < n {
		s.put(ordinal, list[:n-1])
	}
	return nil
}

// without is a list without a message. Two profiles that became one may both have had it: then
// the newer one is taken out.
func without(list []entry, id MessageID) []entry {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].id == id {
			return slices.Delete(list, i, i+1)
		}
	}
	return list
}

// key is where the messages of a profile are.
func (s *State) key(ordinal uint32) string {
	return state.TextKey(s.account, textCounted, string(binary.BigEndian.AppendUint32(nil, ordinal)))
}

// errFormat means that the messages of a profile are not of a known layout.
var errFormat = errors.New("messages that count for caps have a bad format")

// stored are the messages of a profile, the oldest first.
func (s *State) stored(ordinal uint32) ([]entry, error) {
	if !s.sets.Members(setCounted).Contains(ordinal) {
		return nil, nil
	}
	b, err := s.store.Entity(s.key(ordinal))
	if err != nil {
		return nil, err
	}
	list, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("profile %d: %w", ordinal, err)
	}
	return list, nil
}

func decode(b []byte) ([]entry, error) {
	if len(b) == 0 || b[0] != entryVersion || (len(b)-1)%entryBytes != 0 || (len(b)-1)/entryBytes > maxKept {
		return nil, errFormat
	}
	list := make([]entry, 0, (len(b)-1)/entryBytes)
	for b = b[1:]; len(b) > 0; b = b[entryBytes:] {
		x := entry{int64(binary.LittleEndian.Uint64(b)), b[8], MessageID(binary.LittleEndian.Uint64(b[9:]))}
		if int(x.channel) >= len(Channels) || len(list) > 0 && x.atMs < list[len(list)-1].atMs {
			return nil, errFormat
		}
		list = append(list, x)
	}
	return list, nil
}

func encode(list []entry) []byte {
	b := make([]byte, 1, 1+len(list)*entryBytes)
	b[0] = entryVersion
	for _, x := range list {
		b = binary.LittleEndian.AppendUint64(b, uint64(x.atMs))
		b = append(b, x.channel)
		b = binary.LittleEndian.AppendUint64(b, uint64(x.id))
	}
	return b
}

// put stores the messages of a profile, of each channel as many as are kept.
func (s *State) put(ordinal uint32, list []entry) {
	var n [len(Channels)]int
	for _, x := range list {
		n[x.channel]++
	}
	list = slices.DeleteFunc(list, func(x entry) bool { n[x.channel]--; return n[x.channel] >= MaxMessages })
	if len(list) == 0 {
		s.drop(ordinal)
		return
	}
	s.store.PutPayload(s.key(ordinal), encode(list))
	s.sets.Set(setCounted).Add(ordinal)
}

// drop removes what is kept of a profile.
func (s *State) drop(ordinal uint32) {
	if counted := s.sets.Find(setCounted); counted != nil && counted.Remove(ordinal) {
		s.store.PutEntity(s.key(ordinal), nil)
	}
}

// Keys are where the messages of profiles are, for what is to leave the store's files.
func (s *State) Keys(ordinals ...uint32) (keys []string) {
	for _, o := range ordinals {
		keys = append(keys, s.key(o))
	}
	return keys
}

// Merge makes the messages of a merged profile the winner's, see [feature.Merger]. They add up:
// both have reached the person.
func (s *State) Merge(_ *feature.Tx, winner, merged uint32) {
	list, err := s.stored(merged)
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if len(list) == 0 {
		return
	}
	all, err := s.stored(winner)
	if err != nil {
		panic(err) // likewise
	}
	all = append(all, list...)
	slices.SortStableFunc(all, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.atMs, y.atMs), cmp.Compare(x.id, y.id))
	})
	s.drop(merged)
	s.put(winner, all)
}

// Erase removes erased profiles, see [feature.Eraser].
func (s *State) Erase(_ *feature.Tx, ordinals ...uint32) error {
	for _, o := range ordinals {
		s.store.PutEntity(s.key(o), nil)
		if counted := s.sets.Find(setCounted); counted != nil {
			counted.Remove(o)
		}
	}
	return nil
}

// Load takes back nothing, see [feature.State]: texts stay in the store, and limits are among
// the account's settings.
func (s *State) Load(byte, string, []byte) (known bool, err error) { return false, nil }

// Hash gives put the messages of all profiles, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	for it := s.sets.Members(setCounted).Iterator(); it.HasNext(); {
		o := it.Next()
		b, err := s.store.Entity(s.key(o))
		if err != nil {
			return err
		}
		if _, err := decode(b); err != nil {
			return fmt.Errorf("profile %d: %w", o, err)
		}
		put(binary.BigEndian.AppendUint32(nil, o))
		put(b)
	}
	return nil
}
