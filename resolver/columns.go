package resolver

import (
	"context"
	"slices"

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

// buildColumns begins columns of the fields beside a scan of the snapshot, unless all are
// known to have too many values. Fields with few values that were seen in the account come
// along. It is nil when none are made.
func (v *View) buildColumns(fields []string) *fieldcolumns.Builder {
	hopeless := func(field string) bool { return v.m.store.Columns.Hopeless(v.a.index, field) }
	fields = slices.DeleteFunc(slices.Clone(fields), hopeless)
	if len(fields) == 0 {
		return nil
	}
	var more []string
	for _, f := range v.a.sketches.profiles.Fields() {
		if f.Lost == 0 {
			more = append(more, f.Path)
		}
	}
	return v.m.store.Columns.Begin(v.a.index, v.a.headers.Count, fields, more)
}
