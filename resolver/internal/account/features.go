package account

import "github.com/musterhq/muster/resolver/internal/feature"

// registered are the features by what they take part in, in the order of their registration.
// [State.Register] sets it.
type registered struct {
	list    []feature.State
	timers  []feature.Timer  // asked at each record
	readers []feature.Reader // asked of each event
}

// of are the features that take part in something.
func of[T any](list []feature.State) (out []T) {
	for _, f := range list {
		if x, ok := f.(T); ok {
			out = append(out, x)
		}
	}
	return out
}

// Open makes the features ready once all that a checkpoint has is loaded.
func (f *Features) Open(profiles uint32) error {
	for _, x := range of[feature.Opener](f.list) {
		if err := x.Open(profiles); err != nil {
			return err
		}
	}
	return nil
}

// Freeze hands to the store what the features have changed and is not there yet.
func (f *Features) Freeze() {
	for _, x := range of[feature.Freezer](f.list) {
		x.Freeze()
	}
}

// Reader is the feature to which events of a type say something, nil for none.
func (f *Features) Reader(eventType []byte) feature.Reader {
	for _, x := range f.readers {
		if x.Reads(eventType) {
			return x
		}
	}
	return nil
}

// Advance does what is due in the features at the record's time.
func (f *Features) Advance(tx *feature.Tx) {
	for _, x := range f.timers {
		x.Advance(tx)
	}
}

// NextDue is the earliest instant (Unix ms) at which Advance has something to do.
func (f *Features) NextDue() (ms int64, ok bool) {
	for _, x := range f.timers {
		if due, has := x.NextDue(); has && (!ok || due < ms) {
			ms, ok = due, true
		}
	}
	return ms, ok
}

// Merge makes what the features have of a merged profile the winner's.
func (f *Features) Merge(tx *feature.Tx, winner, merged uint32) {
	for _, x := range of[feature.Merger](f.list) {
		x.Merge(tx, winner, merged)
	}
}

// Keys are the texts in the store that the features have of profiles.
func (f *Features) Keys(ordinals ...uint32) (keys []string) {
	for _, x := range of[feature.Keyed](f.list) {
		keys = append(keys, x.Keys(ordinals...)...)
	}
	return keys
}

// Erase removes erased profiles from the features.
func (f *Features) Erase(tx *feature.Tx, ordinals ...uint32) {
	for _, x := range of[feature.Eraser](f.list) {
		if err := x.Erase(tx, ordinals...); err != nil {
			panic(err) // the store is at fault; the record is named
		}
	}
}
