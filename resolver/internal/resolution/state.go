package resolution

import (
	"fmt"
	"hash/maphash"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/resolver/search"
	"github.com/musterhq/muster/segment"
)

// FlagErased marks the header of a profile of which nothing else is left. Its
// ordinal stays taken, its ids lead to no profile.
const FlagErased = 1

// The bounds of anonymous ids, which are beside the identifiers that the identifier cap counts.
const (
	// MaxAnonymousIDs is how many a profile shows. Under rules before [identrules.VersionCalls] those
	// beyond stay with a profile of their own; later the oldest make room.
	MaxAnonymousIDs = 200
	// maxGivenUp is how many of those that made room are still known to be the person's
	// when the person is erased.
	maxGivenUp = 1000
	// MaxMergedAnonymous is how many anonymous profiles can become part of one.
	MaxMergedAnonymous = 1000
)

// Host is what resolution needs of the rest of an account. Its methods belong to the record
// that is being applied.
type Host interface {
	// ListIDs are the ids of the account's lists by their numbers, which documents hold.
	ListIDs() map[uint32]string
	// Erased reports whether an identifier is kept out because its person was erased.
	Erased(h identifier.Hash) bool
	// NoteRefused notes that the record has an identifier of an erased person, so that it is
	// taken out of the log. RefuseErased also returns the refusal of that identifier.
	NoteRefused()
	RefuseErased(k identifier.Kind) *refuse.Refusal
	// Restore puts back into a document what the erased person with an identifier refused,
	// and reports whether that changed the document.
	Restore(d *profile.Document, h identifier.Hash) bool
	// Merge makes the winner's what other parts of the account have of a merged profile.
	Merge(winner uint32, merged *Merged)
	// LeaveMerged takes a document off the lists whose topics one of the profiles left that
	// became part of it.
	LeaveMerged(d *profile.Document, ordinals []uint32)
	// LogConsents stores what people said of channels and topics, which a document that is
	// being stored has.
	LogConsents(ordinal uint32, changes []profile.ConsentChange)
	// Evict removes devices that a profile has no room for after a merge.
	Evict(devices []profile.Device)
}

// Shared is what the profiles of all accounts share: where they are stored, and the work on
// the record that is being applied.
type Shared struct {
	store *state.Store
	index *search.Index
	work  *Work

	// Created, Merges and Conflicts count since the process started.
	Created, Merges, Conflicts uint64
}

// Work is the record that is being applied as the profiles see it, with the memory that
// resolving its events uses again for each of them. The machine's transaction owns it: only
// the goroutine that applies records may touch it.
type Work struct {
	AtMs  int64 // log time of the record, Unix ms
	Rules int   // the version of the state machine's rules that it is applied by

	// Doc is the document of the profile that the record works on: that of the latest result,
	// until another is loaded into it.
	Doc profile.Document

	// The events that are looked up ahead of being applied, so that what they need is near
	// the processor by then, and the event of a command.
	window [WindowEvents]Lookup
	single Lookup

	// What resolving one event finds, from Resolve until Store.
	mergedProfiles []Merged
	merged         segment.Facts     // see noteMerged
	evicted        []profile.Device  // that a merge leaves no room for
	foreign        []foreignConflict // to be noted on other profiles

	// Scratch within one function at a time.
	other       profile.Document
	merger      profile.JSONMerger
	identifiers []profile.Identifier
	normal      []byte // the normal form of an identifier
}

// Begin readies the work for a record.
func (w *Work) Begin(atMs int64, rules int) { w.AtMs, w.Rules = atMs, rules }

// foreignConflict is a conflict to be noted on another profile.
type foreignConflict struct {
	ordinal uint32
	profile.Conflict
}

// NewShared returns what the profiles in a store share. The index is kept up to date with
// the documents.
func NewShared(store *state.Store, index *search.Index, work *Work) *Shared {
	return &Shared{store: store, index: index, work: work}
}

// State is the profiles of an account.
type State struct {
	*Shared
	*Work

	// Headers and Identifiers are for reading, and for checkpoints; other parts of the
	// account may have entries of their own kinds among the identifiers.
	Headers     profile.HeaderTable
	Identifiers profile.IdentifierMap
	// Hasher hashes the account's identifiers. Configure sets it.
	Hasher identifier.Hasher
	// Reach has sets of profiles that follow from the documents.
	Reach *reach.Sets

	account          state.Account
	host             Host
	placeholders     identifier.Placeholders
	placeholderTexts []string
	identifierCap    int
	// caseFolds are e-mails by their folded form, both as hashes: see casefold.go.
	caseFolds map[identifier.Hash][]identifier.Hash
	unchanged unchanged
}

// New returns the state of an account without profiles. The sets are the account's.
func New(account state.Account, shared *Shared, sets *profile.OrdinalSets, host Host) *State {
	return &State{
		Shared: shared, Work: shared.work, Identifiers: profile.NewIdentifierMap(), Reach: reach.NewSets(sets),
		account: account, host: host, caseFolds: map[identifier.Hash][]identifier.Hash{},
		unchanged: unchanged{seed: maphash.MakeSeed()},
	}
}

// Configure sets what the account's settings say of identifiers: the key of hashes, the
// values that are placeholders, and how many identifiers a profile may have.
func (s *State) Configure(key [16]byte, placeholders []string, identifierCap int) {
	s.Hasher = identifier.NewHasher(key)
	s.placeholders, s.placeholderTexts = identifier.NewPlaceholders(placeholders), placeholders
	s.identifierCap = identifierCap
	s.unchanged.clear()
}

// Root is the ordinal's profile after merges. Chains have one link: a merge
// redirects everything that was merged into the merged profile.
func (s *State) Root(ordinal uint32) uint32 { return s.Headers.Get(ordinal).Winner }

// Owner is the profile that an identifier leads to, through merges; [profile.NoOrdinal] if it
// leads to none. A merge gives the winner what the merged profile's document has; anonymous ids
// that it had given up stay where they were.
func (s *State) Owner(h identifier.Hash) uint32 {
	o := s.Identifiers.Owner(h)
	if o != profile.NoOrdinal {
		o = s.Root(o)
	}
	return o
}

// Erased reports whether nothing is left of a profile.
func (s *State) Erased(ordinal uint32) bool { return s.Headers.Get(ordinal).Flags&FlagErased != 0 }

// Ordinal is the number of the profile that was given an id; ok is false for an id that no
// profile was given.
func (s *State) Ordinal(id profile.ID) (o uint32, ok bool) {
	o = id.Ordinal()
	return o, o < s.Headers.Count && s.Headers.Get(o).ID == id
}

// Find finds the profile that an id stands for, through merges; ok is false for an id that
// no profile was given, or whose profile was erased.
func (s *State) Find(id profile.ID) (o uint32, ok bool) {
	if o, ok = s.Ordinal(id); !ok {
		return 0, false
	}
	o = s.Root(o)
	return o, !s.Erased(o)
}

// Universe is the profiles that are neither merged into another nor erased.
func (s *State) Universe() *roaring.Bitmap {
	b := roaring.New()
	b.AddRange(0, uint64(s.Headers.Count))
	for o := range s.Headers.Count {
		if s.Root(o) != o || s.Erased(o) {
			b.Remove(o)
		}
	}
	b.RunOptimize()
	return b
}

// Erase leaves nothing of the headers of an erased profile but their ids.
func (s *State) Erase(ordinals []uint32) {
	for _, x := range ordinals {
		h := s.Headers.Edit(x)
		h.Flags |= FlagErased
		h.LastEvent = 0
	}
}

// Release takes an identifier off its owner.
func (s *State) Release(k identifier.Kind, value []byte, h identifier.Hash) {
	s.Identifiers.Remove(h)
	if k == identifier.Email {
		s.removeCaseFold(value, h)
	}
}

// Detach takes a value that has become a placeholder off the profiles that hold it as an
// identifier, and calls changed with each of them before the value is freed. Values are
// compared lower-cased, so an external id that differs in case only keeps working for what
// it holds but takes no new events.
func (s *State) Detach(value []byte, changed func(ordinal uint32, d *profile.Document)) error {
	for k := range identifier.Kinds {
		h, ok := s.Hasher.HashIdentifier(k, value, &s.normal)
		if !ok {
			continue
		}
		ordinal, ok := s.Identifiers.Get(h)
		if !ok {
			continue
		}
		if err := s.Load(ordinal, &s.Doc); err != nil {
			return err
		}
		kept := s.identifiers[:0]
		for _, id := range s.Doc.Identifiers {
			if have, _ := s.Hasher.HashIdentifier(id.Kind, id.Value, &s.normal); id.Kind == k && have == h {
				continue
			}
			kept = append(kept, id)
		}
		s.identifiers = kept
		s.Doc.Identifiers = append(s.Doc.Identifiers[:0], kept...)
		s.Save(ordinal, &s.Doc)
		changed(ordinal, &s.Doc)
		s.Release(k, value, h)
	}
	return nil
}

// HasPlaceholder reports whether the settings have a value as a placeholder.
func (s *State) HasPlaceholder(value []byte) bool { return s.placeholders.Has(value) }

// isPlaceholder reports whether an identifier of an event is a placeholder; of a masked
// one its hash tells.
func (s *State) isPlaceholder(kind identifier.Kind, raw []byte, h identifier.Hash) bool {
	if !identifier.IsMasked(raw) {
		return s.placeholders.Has(raw)
	}
	for _, v := range s.placeholderTexts {
		if have, ok := s.Hasher.HashIdentifier(kind, []byte(v), &s.normal); ok && have == h {
			return true
		}
	}
	return false
}

// LoadPage takes back a page of headers that a checkpoint has. Pages come in order.
func (s *State) LoadPage(number uint32, value []byte) error {
	p, err := profile.DecodePage(value)
	if err != nil {
		return err
	}
	t := &s.Headers
	if int(number) != len(t.Pages) {
		return fmt.Errorf("page %d is there, page %d is missing", number, len(t.Pages))
	}
	t.Pages = append(t.Pages, p)
	// Ids are never zero: the last profile ends the table.
	for i := range p.Rows {
		if p.Rows[i].ID != (profile.ID{}) {
			t.Count = uint32(len(t.Pages)-1)*profile.PageRows + uint32(i) + 1
		}
	}
	return nil
}

// NoProfile refuses an id that stands for no profile.
func NoProfile() *refuse.Refusal { return refuse.NotFound("id", "there is no contact with this id") }
