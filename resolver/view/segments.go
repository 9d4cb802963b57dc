package view

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// What the segment engine knows, at any instant from the view's log time on.
// While a segment, or one it refers to, is being built the engine does not know
// its members: ok is then false, and history must be asked.

// Progress is how much of a segment's newest definition is built, from 0
// to 1, and whether its members are known.
func (v Segments) Progress(id string) (progress float64, live bool) {
	progress, live = v.a.Engine.Progress(id)
	return progress, live && v.a.Engine.Live(id)
}

// Facts is what conditions other than activity look at in a profile, as the engine
// gets it. It stays as it is when the view is left.
func (v Profiles) Facts(ordinal uint32) (*segment.Facts, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return nil, err
	}
	f := &segment.Facts{}
	d.FillFacts(f, v.a.Contacts.ListIDs(), v.a.Profiles.Headers.Get(ordinal).LastEvent) // documents are never changed in place
	return f, nil
}

// Count is the number of members of a segment at atMs.
func (v Segments) Count(id string, atMs int64) (n uint64, ok bool) {
	if !v.a.Engine.Live(id) {
		return 0, false
	}
	return v.a.Engine.Count(id, v.atLeast(atMs)), true
}

// Members is who belongs to a segment at atMs. The answer is the caller's.
func (v Segments) Members(id string, atMs int64) (members *roaring.Bitmap, ok bool) {
	if !v.a.Engine.Live(id) {
		return nil, false
	}
	return v.a.Engine.Members(id, v.atLeast(atMs)), true
}

// Page lists members of a segment at atMs in order of ordinals, from an
// ordinal on, limit at most.
func (v Segments) Page(id string, from uint32, limit int, atMs int64) (ordinals []uint32, ok bool) {
	if !v.a.Engine.Live(id) {
		return nil, false
	}
	return v.a.Engine.Page(id, from, limit, v.atLeast(atMs)), true
}

// Has reports whether a profile belongs to a segment at atMs.
func (v Segments) Has(id string, ordinal uint32, atMs int64) (member, ok bool) {
	if !v.a.Engine.Live(id) {
		return false, false
	}
	return v.a.Engine.Contains(id, ordinal, v.atLeast(atMs)), true
}

// LeafMembers is who satisfies the positive form of a condition at atMs, by the
// condition's key, when a live segment has that condition. The answer is the
// caller's.
func (v Segments) LeafMembers(key string, atMs int64) (members *roaring.Bitmap, ok bool) {
	return v.a.Engine.Leaf(key, v.atLeast(atMs))
}

// KeptMembers is who satisfies the positive form of a condition that the state keeps sets
// for anyway, at any time: one on a list, or on a status as far as time does not decide it.
// The answer is the caller's.
func (v Segments) KeptMembers(leaf *segment.Node) (members *roaring.Bitmap, ok bool) {
	switch {
	case leaf.Kind == segment.KindList:
		if l, ok := v.a.Contacts.Find(leaf.List.ListID); ok {
			return v.a.Contacts.Members(l).Clone(), true
		}
		return roaring.New(), true
	case leaf.Kind == segment.KindAttribute && leaf.Attribute.Predicate.Path[0] == segment.FieldStatus:
		return v.a.Profiles.Reach.StatusMembers(&leaf.Attribute.Predicate, v.a.Engine.Universe())
	}
	return nil, false
}

// All is all profiles of the account that are not merged into another. The
// answer is the caller's.
func (v Profiles) All() *roaring.Bitmap { return v.a.Engine.Universe().Clone() }

// Anonymous is the profiles of which nothing says who they are, nil for none. The answer is
// the caller's.
func (v Profiles) Anonymous() *roaring.Bitmap {
	if v.a.Engine.Anonymous().IsEmpty() {
		return nil
	}
	return v.a.Engine.Anonymous().Clone()
}

// identified is all profiles but the anonymous ones: those that are listed and counted. It
// must not be changed, and is valid as long as the view.
func (v *base) identified() *roaring.Bitmap {
	all, anonymous := v.a.Engine.Universe(), v.a.Engine.Anonymous()
	if anonymous.IsEmpty() {
		return all
	}
	return roaring.AndNot(all, anonymous)
}

// Count is how many profiles there are, without the anonymous ones.
func (v Profiles) Count() uint64 {
	return v.a.Engine.Universe().GetCardinality() - v.a.Engine.Anonymous().GetCardinality()
}

// Stats are the sizes of the account's segment engine. It reads all of
// it.
func (v Segments) Stats() engine.Stats { return v.a.Engine.Stats() }

// atLeast is atMs, but not before the engine's time.
func (v *base) atLeast(atMs int64) int64 { return max(atMs, v.a.Engine.NowMs()) }

// All lists the saved segments, the oldest first.
func (v Segments) All() []account.Segment {
	list := v.a.SegmentsByAge()
	out := make([]account.Segment, len(list))
	for i, s := range list {
		out[i] = *s
	}
	return out
}

// Get finds a saved segment.
func (v Segments) Get(id string) (account.Segment, bool) {
	if s := v.a.Segments[id]; s != nil {
		return *s, true
	}
	return account.Segment{}, false
}

// WantsBuilt reports whether one of the leaves or states is still being built.
func (v Segments) WantsBuilt(ids ...uint32) bool { return v.a.Engine.Wants(ids) }
