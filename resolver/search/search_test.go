package search

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// person is a profile as the naive account of them has it.
type person struct {
	emails                         []string
	externalID, phone, first, last string
	lastEvent                      int64 // 0 for none
}

// texts are those by which a person is found, by fields in their order.
func (p *person) texts() [][2]string {
	digits := strings.TrimPrefix(p.phone, "+")
	full := strings.TrimSpace(p.first + " " + p.last)
	var out [][2]string
	for _, email := range p.emails {
		out = append(out, [2]string{string(indexEmail), email})
	}
	out = append(out, [][2]string{{string(indexExternalID), p.externalID}, {string(indexPhone), digits}, {string(indexName), full}}...)
	if p.first != "" {
		out = append(out, [2]string{string(indexLastName), p.last})
	}
	for i := range out {
		out[i][1] = strings.ToLower(out[i][1])
	}
	slices.SortFunc(out, func(x, y [2]string) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) })
	return slices.DeleteFunc(out, func(x [2]string) bool { return x[1] == "" })
}

func (p *person) anonymous() bool { return len(p.emails) == 0 && p.externalID == "" && p.phone == "" }

func (p *person) document() []byte {
	d := profile.Document{CreatedMs: 1, FirstName: []byte(p.first), LastName: []byte(p.last)}
	add := func(kind identifier.Kind, value string) {
		if value != "" {
			d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: kind, Value: []byte(value)})
		}
	}
	for _, email := range p.emails {
		add(identifier.Email, email)
	}
	add(identifier.ExternalID, p.externalID)
	add(identifier.Phone, p.phone)
	if p.anonymous() {
		add(identifier.Anonymous, "device")
	}
	return d.Append(nil)
}

// people are an account's profiles, in step with the index in a store.
type people struct {
	store          *state.Store
	index          *Index
	headers        profile.HeaderTable
	docs           map[uint32][]byte
	persons        map[uint32]person
	all, anonymous *roaring.Bitmap
}

func (p *people) Number() uint64                             { return featuretest.Account }
func (p *people) Store() *state.Store                        { return p.store }
func (p *people) Hasher() identifier.Hasher                  { return identifier.NewHasher([16]byte{1}) }
func (p *people) Headers() *profile.HeaderTable              { return &p.headers }
func (p *people) All() *roaring.Bitmap                       { return p.all }
func (p *people) Anonymous() *roaring.Bitmap                 { return p.anonymous }
func (p *people) WithStatus(string, string) *roaring.Bitmap  { return p.all }
func (p *people) Decode(o uint32, d *profile.Document) error { return d.Decode(p.docs[o]) }

// Hash compares the index with the documents.
func (p *people) Hash(func([]byte)) error {
	sum := NewSum(featuretest.Account, p.Hasher())
	for o, b := range p.docs {
		if err := sum.Add(o, b); err != nil {
			return err
		}
	}
	return sum.Check(p.store)
}

// put makes a person the profile of an ordinal; nil is none any more.
func (p *people) put(o uint32, x *person) {
	var now []byte
	p.anonymous.Remove(o)
	if x != nil {
		now = x.document()
		p.persons[o] = *x
		p.all.Add(o)
		if x.anonymous() {
			p.anonymous.Add(o)
		}
		p.headers.Edit(o).LastEvent = x.lastEvent
	}
	p.index.Update(featuretest.Account, o, p.docs[o], now, profile.Compare(p.docs[o], now))
	p.docs[o] = now
	if x == nil {
		delete(p.docs, o)
		delete(p.persons, o)
		p.all.Remove(o)
	}
}

func newPeople(s *state.Store) *people {
	return &people{store: s, index: NewIndex(s), docs: map[uint32][]byte{}, persons: map[uint32]person{}, all: roaring.New(), anonymous: roaring.New()}
}

func randomPerson(rng *rand.Rand) *person {
	some := func(list ...string) string { return list[rng.IntN(len(list))] }
	return &person{
		emails:     slices.DeleteFunc([]string{some("", "ada@x.io", "Ada@Y.io"), some("", "bob@x.io", "4you@x.io", "ada@a.io")}, func(s string) bool { return s == "" }),
		externalID: some("", "a1", "A2", "44", "ada"),
		phone:      some("", "+4412", "+4499", "+17"), first: some("", "Ada", "bob", "Ann"), last: some("", "Lovelace", "ADAMS", "Lo"),
		lastEvent: rng.Int64N(4) * 1000,
	}
}

// naive lists the places of what a query finds, by looking at everybody.
func (p *people) naive(q *Query) (out []Place) {
	for o, x := range p.persons {
		if len(q.Within) == 0 && x.anonymous() || slices.ContainsFunc(q.Within, func(s *roaring.Bitmap) bool { return !s.Contains(o) }) {
			continue
		}
		place, found := Place{Ordinal: o}, q.Text == ""
		for _, t := range x.texts() {
			want := strings.ToLower(q.Text)
			if t[0] == string(indexPhone) {
				if want = strings.TrimPrefix(want, "+"); strings.Trim(want, "0123456789") != "" {
					continue
				}
			}
			if !found && want != "" && strings.HasPrefix(t[1], want) {
				found, place.Field, place.Text = true, t[0][0], t[1]
			}
		}
		if q.Order != OrderMatch {
			place.Field, place.Text = 0, ""
		}
		if q.Order == OrderLastEvent {
			place.AtMs = profile.NoEvent
			if x.lastEvent != 0 {
				place.AtMs = x.lastEvent
			}
		}
		if found {
			out = append(out, place)
		}
	}
	slices.SortFunc(out, func(x, y Place) int {
		switch q.Order {
		case OrderNewest:
			return cmp.Compare(y.Ordinal, x.Ordinal)
		case OrderLastEvent:
			return cmp.Or(cmp.Compare(y.AtMs, x.AtMs), cmp.Compare(y.Ordinal, x.Ordinal))
		}
		return cmp.Or(cmp.Compare(x.Field, y.Field), cmp.Compare(x.Text, y.Text), cmp.Compare(x.Ordinal, y.Ordinal))
	})
	return out
}

// TestSearchMatchesNaive: the index follows from the documents, whatever becomes of profiles,
// and the pages of a search together have whom it finds, each once, in its order.
func TestSearchMatchesNaive(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := featuretest.New(t, nil, newPeople)
		p := w.State
		for range 60 {
			p.headers.Add()
		}
		for range 200 {
			o := rng.Uint32N(p.headers.Count)
			if rng.IntN(6) == 0 {
				p.put(o, nil)
			} else {
				p.put(o, randomPerson(rng))
			}
		}
		w.Hash()
		for _, text := range []string{"", "a", "ada", "ADA", "ada l", "lo", "4", "44", "+44", "bob@", "zz"} {
			for order := OrderMatch; order <= OrderLastEvent; order++ {
				if order == OrderMatch && text == "" {
					continue
				}
				within := roaring.New()
				for range 40 {
					within.Add(rng.Uint32N(p.headers.Count))
				}
				for _, sets := range [][]*roaring.Bitmap{nil, {within}} {
					q := Query{Text: text, Order: order, Within: sets, Limit: 1 + rng.IntN(7)}
					if have, want := pages(t, p, &q), p.naive(&q); !slices.Equal(have, want) {
						t.Fatalf("seed %d: %q in order %d: %v, want %v", seed, text, order, have, want)
					}
				}
			}
		}
	}
}

// pages shows all pages of a query.
func pages(t *testing.T, p *people, q *Query) (out []Place) {
	t.Helper()
	for {
		shown := 0
		next, err := Search(p, q, func(place Place, d *profile.Document) bool {
			if *q.PlaceOf(place.Ordinal, d, place.AtMs) != place {
				t.Fatalf("%+v is not the place of %+v", place, d)
			}
			out = append(out, place)
			shown++
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			return out
		}
		if shown > q.Limit {
			t.Fatalf("%d profiles on a page of %d", shown, q.Limit)
		}
		q.After = next
	}
}

// TestBuildMakesTheSameIndex: an index that is made of stored documents is that which was kept.
func TestBuildMakesTheSameIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	kept, made := featuretest.New(t, nil, newPeople), featuretest.New(t, nil, newPeople)
	for range 50 {
		o, _ := kept.State.headers.Add()
		kept.State.put(o, randomPerson(rng))
	}
	made.State.docs = kept.State.docs
	for o, b := range kept.State.docs {
		key := binary.BigEndian.AppendUint32(state.AccountKey(nil, state.TableDocument, featuretest.Account), o)
		if err := made.Store.DB.Set(key, b, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := Build(made.Store, nil, func(account uint64) bool { return account == featuretest.Account }); err != nil {
		t.Fatal(err)
	}
	made.Hash()
	if err := Build(made.Store, nil, func(uint64) bool { return false }); err == nil {
		t.Fatal("documents of an unknown account are no error")
	}
}

// TestHoldersMatchNaive: the profiles that show an identifier are found by it, in order.
func TestHoldersMatchNaive(t *testing.T) {
	w := featuretest.New(t, nil, newPeople)
	rng := rand.New(rand.NewPCG(4, 4))
	for range 40 {
		o, _ := w.State.headers.Add()
		w.State.put(o, randomPerson(rng))
	}
	for _, value := range []string{"a1", "A1", "44", "4", "ada"} {
		var want []uint32
		for o := range w.State.headers.Count {
			if x := w.State.persons[o]; x.externalID == value {
				want = append(want, o)
			}
		}
		for from := range uint32(3) {
			have, err := Holders(w.State, identifier.ExternalID, value, from*10, 3)
			rest := slices.DeleteFunc(slices.Clone(want), func(o uint32) bool { return o < from*10 })
			if rest = rest[:min(len(rest), 3)]; err != nil || fmt.Sprint(have) != fmt.Sprint(rest) {
				t.Fatalf("%q from %d: %v %v, want %v", value, from*10, have, err, rest)
			}
		}
	}
}
