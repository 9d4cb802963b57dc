package view

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/resolver/catalog"
	"github.com/musterhq/muster/resolver/internal/fieldcolumns"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment"
)

// FieldColumn is a field of all profiles at one cut: see [Columns.Of].
type FieldColumn = fieldcolumns.View

// Of is the column of a field, if one is kept: see Node.RefreshColumns of package node and
// [View.Snapshot]. It outlives the view.
func (v Columns) Of(field string) (*FieldColumn, bool) {
	left, err := v.refresh()
	if err != nil || left > 0 {
		return nil, false
	}
	return v.store.Columns.View(v.a.Index, field)
}

// refreshAtOnce is how many changed profiles are read again while Apply waits.
const refreshAtOnce = 1024

// Refresh reads some of the profiles again that have changed since the columns were
// right; near says that few are left.
func (v Columns) Refresh() (near bool, err error) {
	left, err := v.refresh()
	return left < refreshAtOnce, err
}

// First is a snapshot whose scan makes the columns that a first preview would make,
// nil when the account has some, or none can be made.
func (v Columns) First() *Snapshot {
	if v.store.Columns.Has(v.a.Index) {
		return nil
	}
	b := v.begin(nil)
	if b == nil {
		return nil
	}
	s := (&View{*v.base}).Snapshot()
	s.columns = b
	return s
}

// refresh reads some of the profiles again that have changed since the columns
// were right, and returns how many are left.
func (v Columns) refresh() (left int, err error) {
	var d profile.Document
	var f segment.Facts
	return v.store.Columns.Refresh(v.a.Index, refreshAtOnce, func(ordinal uint32) (*segment.Fields, error) {
		if !v.a.Engine.Universe().Contains(ordinal) {
			return nil, nil // merged or erased; its document is gone
		}
		b, err := v.store.Peek(v.a.Name(), ordinal)
		if err != nil || b == nil {
			return nil, err
		}
		if err := d.Decode(b); err != nil {
			return nil, err
		}
		d.FillFacts(&f, v.a.Contacts.ListIDs(), v.a.Profiles.Headers.Get(ordinal).LastEvent)
		return &f.Fields, nil
	})
}

// build begins columns of the fields given beside a scan of the snapshot. It is nil
// when there are none to make: a field has no column, or is known to have too many values.
func (v Columns) build(fields []string) *fieldcolumns.Builder {
	fields = slices.DeleteFunc(slices.Clone(fields), func(field string) bool {
		_, ok := segment.NewColumn(field)
		return !ok || v.store.Columns.Hopeless(v.a.Index, field)
	})
	if len(fields) == 0 {
		return nil
	}
	return v.begin(fields)
}

// begin begins columns of the fields given, those that are kept, and those seen in
// the account whose values are not mostly different, the fewest values first.
func (v Columns) begin(fields []string) *fieldcolumns.Builder {
	var seen []*catalog.Field
	if sketch := v.a.Types.Attributes(); sketch != nil {
		seen = slices.DeleteFunc(sketch.Fields(), func(f *catalog.Field) bool { return f.Lost > f.Seen()/2 })
	}
	slices.SortStableFunc(seen, func(x, y *catalog.Field) int { return cmp.Compare(x.Lost, y.Lost) })
	more := make([]string, len(seen))
	for i, f := range seen {
		more[i] = f.Path
	}
	return v.store.Columns.Begin(v.a.Index, v.a.Profiles.Headers.Count, fields, more)
}
