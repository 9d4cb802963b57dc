package eventtypes

import (
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/catalog"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/statefiles"
	"github.com/musterhq/muster/segment/engine"
)

// The catalog of properties and attributes: sketches of what the events of each type and
// the profiles look like. See docs/decisions/0053.

// The bounds. They are part of the rules of the state machine.
const (
	maxSketches    = 2000    // of event types, per account
	maxSketchBytes = 8 << 20 // of all sketches of an account
)

// sketches is an account's catalog of properties and attributes. That of an event type
// hangs on the type.
type sketches struct {
	on       bool // the account has a catalog
	looker   *catalog.Looker
	budget   catalog.Budget
	types    int // how many types have one
	dirty    []*Type
	profiles *catalog.Sketch // nil before the first profile with attributes
	changed  bool            // profiles, since the last checkpoint
	// loaded are those that were read and have yet to be hung on their types.
	loaded map[string]*catalog.Sketch
}

// The first byte of the name of an entity of kind [state.EntitySketch].
const (
	sketchOfType     = 'e' // the event type follows
	sketchOfProfiles = 'p'
)

// SetSketches says whether the account has a catalog of properties and attributes. Accounts
// whose records were made under older rules have none.
func (s *State) SetSketches(on bool) { s.sketches.on = on }

// Look shows the catalog an event, which t has counted already.
func (s *State) Look(t *Type, ordinal uint32, atMs int64, properties []byte) {
	k, x := &s.sketches, t.sketch
	if x == nil {
		if !k.on || k.types >= maxSketches {
			return
		}
		x = catalog.New()
		x.Base = t.Count - 1
		t.sketch = x
		k.types++
	}
	if !catalog.Sampled(t.Count - 1 - x.Base) {
		return
	}
	k.looker.Look(x, &k.budget, ordinal, atMs, catalog.Part{Raw: properties})
	k.touch(t)
}

func (k *sketches) touch(t *Type) {
	if !t.sketchDirty {
		t.sketchDirty = true
		k.dirty = append(k.dirty, t)
	}
}

// LookAtProfile shows the catalog a profile if fields says that its attributes or its
// geo have changed.
func (s *State) LookAtProfile(ordinal uint32, atMs int64, d *profile.Document, fields engine.Fields) {
	if fields&(engine.FieldGeo|engine.FieldAttributes) == 0 || !s.sketches.on {
		return
	}
	k := &s.sketches
	if k.profiles == nil {
		k.profiles = catalog.NewAttributes()
	}
	n := k.profiles.Base
	k.profiles.Base++
	k.changed = true
	if catalog.Sampled(n) {
		k.looker.Look(k.profiles, &k.budget, ordinal, atMs, catalog.Part{Key: "geo", Raw: d.Geo}, catalog.Part{Key: "attributes", Raw: d.Attributes})
	}
}

// Erase implements [feature.Eraser]: it removes what the catalog has of erased profiles
// alone.
func (s *State) Erase(_ *feature.Tx, ordinals ...uint32) error {
	gone := roaring.BitmapOf(ordinals...)
	k := &s.sketches
	for _, t := range s.types {
		if t.sketch != nil && t.sketch.Erase(&k.budget, gone.Contains) {
			k.touch(t)
		}
	}
	if k.profiles != nil && k.profiles.Erase(&k.budget, gone.Contains) {
		k.changed = true
	}
	return nil
}

// freezeSketches puts the sketches that changed into the store.
func (s *State) freezeSketches() {
	k := &s.sketches
	for _, t := range k.dirty {
		s.store.PutEntity(state.EntityKey(s.account, state.EntitySketch, string([]byte{sketchOfType})+t.Key), t.sketch.Append(nil))
		t.sketchDirty = false
	}
	k.dirty = k.dirty[:0]
	if k.changed {
		s.store.PutEntity(state.EntityKey(s.account, state.EntitySketch, string([]byte{sketchOfProfiles})), k.profiles.Append(nil))
		k.changed = false
	}
}

// loadSketch reads an entity of kind [state.EntitySketch].
func (s *State) loadSketch(name string, value []byte) error {
	k := &s.sketches
	switch {
	case name == string([]byte{sketchOfProfiles}):
		k.profiles = catalog.NewAttributes()
		return k.profiles.Decode(&k.budget, value)
	case name != "" && name[0] == sketchOfType:
		if k.loaded == nil {
			k.loaded = map[string]*catalog.Sketch{}
		}
		x := catalog.New()
		k.loaded[strings.Clone(name[1:])] = x
		k.types++
		return x.Decode(&k.budget, value)
	}
	return fmt.Errorf("%w: sketch of kind %q", statefiles.ErrNewer, name)
}

// Properties is the sketch of the events of a type, nil where there is none: before the
// first event, or where the account has catalogs of so many types as there can be. It is
// valid inside the function that the view of the state is handed to, and must not be changed.
func (s *State) Properties(eventType string) *catalog.Sketch {
	if t := s.types[eventType]; t != nil {
		return t.sketch
	}
	return nil
}

// Attributes is the sketch of the profiles' geo and attributes, nil before the first one
// that has some. It is valid as that of [State.Properties] is.
func (s *State) Attributes() *catalog.Sketch { return s.sketches.profiles }
