package eventtypes

import (
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/catalog"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/state"
)

func newWorld(t *testing.T, listeners map[string]feature.Listener, erased func() bool) *featuretest.World[*State] {
	return featuretest.New(t, Commands, func(store *state.Store) *State {
		s := New(featuretest.Account, store, new(catalog.Looker), listeners, erased)
		s.SetSketches(true)
		return s
	})
}

func nobody() bool { return false }

// seen counts an event and shows it to the catalog, as the machine does.
func seen(w *featuretest.World[*State], typ string, ordinal uint32, properties string, public bool) *Type {
	t := w.State.CountSent(&eventlog.Event{Type: []byte(typ), Public: public}, w.Now, identrules.Event{Version: eventlog.EventRules, Live: true})
	w.State.Look(t, ordinal, w.Now, []byte(properties))
	return t
}

// TestCatalogBounds: an account has sketches of so many types as it may, and no more.
func TestCatalogBounds(t *testing.T) {
	w := newWorld(t, nil, nobody)
	w.State.sketches.types = maxSketches - 1
	seen(w, "bought", 1, `{"a":1}`, false)
	seen(w, "viewed", 1, `{"a":1}`, false)
	if w.State.Properties("bought") == nil || w.State.Properties("viewed") != nil {
		t.Error("one type more had room")
	}
	w.State.sketches.budget.Limit = w.State.sketches.budget.Used
	seen(w, "bought", 1, `{"b":1}`, false)
	s := w.State.Properties("bought")
	if _, known := s.Find([]string{"b"}); known || s.More() != 1 {
		t.Errorf("%d more", s.More())
	}
}

// TestPublicTypesAreBounded: browsers' keys bring so many types as they may; a server that
// sends one of them makes room for another.
func TestPublicTypesAreBounded(t *testing.T) {
	w := newWorld(t, nil, nobody)
	rules := identrules.Event{Version: eventlog.EventRules, Live: true}
	for i := range MaxPublic {
		seen(w, string(rune('a'+i%26))+string(rune('0'+i/26)), 1, "", true)
	}
	next := &eventlog.Event{Type: []byte("next"), Public: true}
	if r := w.State.Refuse(next, rules); r == nil || r.Code != CodePublic {
		t.Fatalf("%v", r)
	}
	if r := w.State.Refuse(&eventlog.Event{Type: []byte("next")}, rules); r != nil {
		t.Fatalf("a server's event: %v", r)
	}
	seen(w, "a0", 1, "", false)
	if r := w.State.Refuse(next, rules); r != nil || w.State.Get("a0").Public || w.State.public != MaxPublic-1 {
		t.Fatalf("%v, %d types", r, w.State.public)
	}
}

// TestCheckpointHasTheCatalog: what was frozen is loaded as it was; sketches of an account
// with erased profiles are not in the hash.
func TestCheckpointHasTheCatalog(t *testing.T) {
	w := newWorld(t, nil, nobody)
	seen(w, "bought", 1, `{"value":1}`, true)
	seen(w, "bought", 2, `{"value":2}`, true)
	w.Must(CommandDefine, Define{Name: "Item Returned"})
	w.Refused("conflict", CommandDefine, Define{Name: "item returned"})
	w.Must(CommandName, Names{Types: []Name{{"bought", " Order "}, {"unseen", "Unseen"}}})
	w.State.Freeze()
	erased := false
	loaded := newWorld(t, nil, func() bool { return erased })
	for key, value := range w.Store.Entities {
		if known, err := loaded.State.Load(key[state.KeyHead], key[state.KeyHead+1:], value); !known || err != nil {
			t.Fatal(key, err)
		}
	}
	if err := loaded.State.Open(0); err != nil {
		t.Fatal(err)
	}
	if loaded.Hash() != w.Hash() || loaded.State.public != 1 || loaded.State.Get("bought").Name != "Order" || loaded.State.Get("unseen") != nil {
		t.Errorf("%+v", loaded.State.List())
	}
	erased = true
	if loaded.Hash() == w.Hash() {
		t.Error("the hash has sketches of an account with erased profiles")
	}
	if err := loaded.State.Erase(nil, 1, 2); err != nil {
		t.Fatal(err)
	}
	if s := loaded.State.Properties("bought"); len(s.Fields()) != 0 {
		t.Errorf("%+v is left of erased profiles", s.Fields())
	}
}

type listener struct{ told []uint32 }

func (l *listener) OnEvent(_ *feature.Tx, ordinal uint32, _ int64) { l.told = append(l.told, ordinal) }

// TestListenersAreTold: a listener hears of the events of its type alone.
func TestListenersAreTold(t *testing.T) {
	l := new(listener)
	w := newWorld(t, map[string]feature.Listener{"answered": l}, nobody)
	for i, typ := range []string{"answered", "bought", "answered"} {
		seen(w, typ, uint32(i), "", false).Notify(w.Tx(), uint32(i), w.Now)
	}
	if len(l.told) != 2 || l.told[1] != 2 {
		t.Errorf("%v", l.told)
	}
}
