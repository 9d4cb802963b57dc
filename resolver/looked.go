package resolver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/catalog"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment/engine"
)

// The catalog of properties and attributes: sketches of what the events of each type and
// the profiles look like. See docs/decisions/0053.

// The bounds. They are part of the rules, as those of [Machine] are.
const (
	maxSketches    = 2000    // of event types, per account
	maxSketchBytes = 8 << 20 // of all sketches of an account
)

// rulesCatalog is the version of the rules of events from which on an account has a
// catalog of properties.
const rulesCatalog = 2

// sketches is an account's catalog of properties and attributes. That of an event type
// hangs on the type.
type sketches struct {
	budget   catalog.Budget
	types    int // how many types have one
	dirty    []*EventType
	profiles *catalog.Sketch // nil before the first profile with attributes
	changed  bool            // profiles, since the last checkpoint
	// loaded are those that were read and have yet to be hung on their types.
	loaded map[string]*catalog.Sketch
}

func newSketches() sketches { return sketches{budget: catalog.Budget{Limit: maxSketchBytes}} }

// The first byte of the name of an entity of kind entitySketch.
const (
	sketchOfType     = 'e' // the event type follows
	sketchOfProfiles = 'p'
)

// beginCatalog lets an account have a catalog that had none, because its records were
// made under older rules.
func (m *Machine) beginCatalog(a *account) {
	if !a.HasCatalog {
		a.HasCatalog = true
		m.saveAccount(a)
	}
}

// look shows the catalog an event, which t has counted already.
func (m *Machine) look(a *account, t *EventType, ordinal uint32, atMs int64, properties []byte) {
	s := t.sketch
	if s == nil {
		if !a.HasCatalog || a.sketches.types >= maxSketches {
			return
		}
		s = catalog.New()
		s.Base = t.Count - 1
		t.sketch = s
		a.sketches.types++
	}
	if !catalog.Sampled(t.Count - 1 - s.Base) {
		return
	}
	m.looker.Look(s, &a.sketches.budget, ordinal, atMs, catalog.Part{Raw: properties})
	a.sketches.touch(t)
}

func (s *sketches) touch(t *EventType) {
	if !t.sketchDirty {
		t.sketchDirty = true
		s.dirty = append(s.dirty, t)
	}
}

// lookAtProfile shows the catalog a profile if fields says that its attributes or its
// geo have changed.
func (m *Machine) lookAtProfile(a *account, ordinal uint32, d *profile.Document, fields engine.Fields) {
	if fields&(engine.FieldGeo|engine.FieldAttributes) == 0 || !a.HasCatalog {
		return
	}
	k := &a.sketches
	if k.profiles == nil {
		k.profiles = catalog.NewAttributes()
	}
	n := k.profiles.Base
	k.profiles.Base++
	k.changed = true
	if catalog.Sampled(n) {
		m.looker.Look(k.profiles, &k.budget, ordinal, m.logTime, catalog.Part{Key: "geo", Raw: d.Geo}, catalog.Part{Key: "attributes", Raw: d.Attributes})
	}
}

// eraseLooked forgets what the catalog has of erased profiles alone.
func (a *account) eraseLooked(gone *roaring.Bitmap) {
	k := &a.sketches
	for _, t := range a.types {
		if t.sketch != nil && t.sketch.Erase(&k.budget, gone.Contains) {
			k.touch(t)
		}
	}
	if k.profiles != nil && k.profiles.Erase(&k.budget, gone.Contains) {
		k.changed = true
	}
}

// storeLooked puts the sketches that changed into the store.
func (m *Machine) storeLooked(a *account) {
	k := &a.sketches
	for _, t := range k.dirty {
		m.store.PutEntity(state.EntityKey(a.number, state.EntitySketch, string([]byte{sketchOfType})+t.Key), t.sketch.Append(nil))
		t.sketchDirty = false
	}
	k.dirty = k.dirty[:0]
	if k.changed {
		m.store.PutEntity(state.EntityKey(a.number, state.EntitySketch, string([]byte{sketchOfProfiles})), k.profiles.Append(nil))
		k.changed = false
	}
}

// loadLooked reads an entity of kind entitySketch.
func (a *account) loadLooked(name string, value []byte) error {
	k := &a.sketches
	switch {
	case name == string([]byte{sketchOfProfiles}):
		k.profiles = catalog.NewAttributes()
		return k.profiles.Decode(&k.budget, value)
	case name != "" && name[0] == sketchOfType:
		if k.loaded == nil {
			k.loaded = map[string]*catalog.Sketch{}
		}
		s := catalog.New()
		k.loaded[strings.Clone(name[1:])] = s
		k.types++
		return s.Decode(&k.budget, value)
	}
	return fmt.Errorf("%w: sketch of kind %q", ErrNewer, name)
}

// hangLooked hangs the sketches that were read on their event types.
func (a *account) hangLooked() error {
	for key, s := range a.sketches.loaded {
		t := a.types[key]
		if t == nil {
			return fmt.Errorf("sketch of the unknown event type %q", key)
		}
		t.sketch = s
	}
	a.sketches.loaded = nil
	return nil
}

// hashLooked adds the sketches to the state's hash. It leaves out those of an account
// with erased profiles: replaying its redacted log gives lower counts.
func (a *account) hashLooked(put func([]byte)) {
	for o := range a.profiles.Headers.Count {
		if a.profiles.Gone(o) {
			return
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.types)) {
		if s := a.types[key].sketch; s != nil {
			put([]byte(key))
			put(s.Append(nil))
		}
	}
	if s := a.sketches.profiles; s != nil {
		put(s.Append(nil))
	}
}

// Properties is the sketch of the events of a type, nil where there is none: before the
// first event, or where the account has catalogs of so many types as there can be. It is
// valid inside the function that the view is handed to, and must not be changed.
func (v *View) Properties(eventType string) *catalog.Sketch {
	if t := v.a.types[eventType]; t != nil {
		return t.sketch
	}
	return nil
}

// Attributes is the sketch of the profiles' geo and attributes, nil before the first one
// that has some. It is valid as that of [View.Properties] is.
func (v *View) Attributes() *catalog.Sketch { return v.a.sketches.profiles }
