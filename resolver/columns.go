package resolver

import (
	"cmp"
	"context"
	"slices"

	"github.com/musterhq/muster/resolver/catalog"
	"github.com/musterhq/muster/resolver/internal/fieldcolumns"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment"
)

const (
	// refreshAtOnce is how many changed profiles are read again while Apply waits, and
	// refreshRounds how often before a question.
	refreshAtOnce = 1024
	refreshRounds = 256
)

// FieldColumn is a field of all profiles at one cut: see [View.FieldColumn].
type FieldColumn = fieldcolumns.View

// FieldColumn is the column of a field, if one is kept: see [Node.RefreshColumns] and
// [View.Snapshot]. It outlives the view.
func (v *View) FieldColumn(field string) (*FieldColumn, bool) {
	left, err := v.refreshColumns()
	if err != nil || left > 0 {
		return nil, false
	}
	return v.m.store.Columns.View(v.a.index, field)
}

// refreshColumns reads some of the profiles again that have changed since the columns
// were right, and returns how many are left.
func (v *View) refreshColumns() (left int, err error) {
	var d profile.Document
	var f segment.Facts
	return v.m.store.Columns.Refresh(v.a.index, refreshAtOnce, func(ordinal uint32) (*segment.Fields, error) {
		b, err := v.m.store.Peek(v.a.name(), ordinal)
		if err != nil || b == nil {
			return nil, err
		}
		if err := d.Decode(b); err != nil {
			return nil, err
		}
		d.FillFacts(&f, v.a.listIDs, v.a.headers.Get(ordinal).LastEvent)
		return &f.Fields, nil
	})
}

// RefreshColumns brings the columns of an account's fields near the present, a little at
// a time, so that Apply does not wait for long when they are asked for. The error wraps
// [ErrNotOwner] when the account is not served here, or is the context's.
func (n *Node) RefreshColumns(ctx context.Context, account uint64) error {
	p, err := n.owner(account)
	if err != nil {
		return err
	}
	for range refreshRounds {
		left, err := p.refreshColumns(account)
		if err != nil || left < refreshAtOnce {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (p *partition) refreshColumns(account uint64) (left int, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.mu.m == nil {
		return 0, p.gone()
	}
	a := p.mu.m.accounts[account]
	if a == nil {
		return 0, nil
	}
	return (&View{p, p.mu.m, a}).refreshColumns()
}

// BuildColumns makes the columns that the first preview would make, unless the account
// has some: see [View.Snapshot]. Errors are those of [Node.Read].
func (n *Node) BuildColumns(ctx context.Context, account uint64) error {
	var snap *Snapshot
	err := n.Read(ctx, account, func(v *View) error {
		if v.m.store.Columns.Has(v.a.index) {
			return nil
		}
		if b := v.beginColumns(nil); b != nil {
			snap = v.Snapshot()
			snap.columns = b
		}
		return nil
	})
	if err != nil || snap == nil {
		return err
	}
	defer snap.Close() //nolint:errcheck // it only gives memory back
	return snap.Scan(ctx, func(uint32, *segment.Facts) error { return nil })
}

// buildColumns begins columns of the fields given beside a scan of the snapshot. It is nil
// when there are none to make: a field has no column, or is known to have too many values.
func (v *View) buildColumns(fields []string) *fieldcolumns.Builder {
	fields = slices.DeleteFunc(slices.Clone(fields), func(field string) bool {
		_, ok := segment.NewColumn(field)
		return !ok || v.m.store.Columns.Hopeless(v.a.index, field)
	})
	if len(fields) == 0 {
		return nil
	}
	return v.beginColumns(fields)
}

// beginColumns begins columns of the fields given, those that are kept, and those seen in
// the account whose values are not mostly different, the fewest values first.
func (v *View) beginColumns(fields []string) *fieldcolumns.Builder {
	var seen []*catalog.Field
	if sketch := v.Attributes(); sketch != nil {
		seen = slices.DeleteFunc(sketch.Fields(), func(f *catalog.Field) bool { return f.Lost > f.Seen()/2 })
	}
	slices.SortStableFunc(seen, func(x, y *catalog.Field) int { return cmp.Compare(x.Lost, y.Lost) })
	more := make([]string, len(seen))
	for i, f := range seen {
		more[i] = f.Path
	}
	return v.m.store.Columns.Begin(v.a.index, v.a.headers.Count, fields, more)
}
