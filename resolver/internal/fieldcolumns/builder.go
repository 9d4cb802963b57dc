package fieldcolumns

import (
	"slices"

	"github.com/musterhq/muster/segment"
)

// Builder makes an account's table of a scan.
type Builder struct {
	of      *Tables
	account uint32
	columns []*column
	// What is below is guarded by of.mu.
	changed changed // since the scanned state
	moot    bool
}

// Begin begins a table of the state that is about to be scanned: wanted are the fields asked
// for, more those that may be asked for next. It returns nil when one is being made already, or
// there is no room for one. [Builder.End] must follow.
func (t *Tables) Begin(account, profiles uint32, wanted, more []string) *Builder {
	t.mu.Lock()
	defer t.mu.Unlock()
	each := (int64(profiles)/pageRows + 1) * pageRows * 2
	room := min(int(t.limit/2/each), MaxColumns)
	if t.building[account] != nil || room == 0 {
		return nil
	}
	b := &Builder{of: t, account: account, changed: newChanged(profiles)}
	add := func(field string) {
		c, ok := segment.NewColumn(field)
		if ok && len(b.columns) < room && !slices.ContainsFunc(b.columns, func(x *column) bool { return x.field.Field == field }) {
			b.columns = append(b.columns, newColumn(c))
		}
	}
	for _, f := range wanted {
		add(f)
	}
	if x := t.tables[account]; x != nil {
		for _, c := range x.columns {
			add(c.field.Field)
		}
	}
	for _, f := range more {
		add(f)
	}
	if len(b.columns) == 0 {
		return nil
	}
	t.building[account] = b
	t.look()
	return b
}

// Add adds a profile of the scanned state.
func (b *Builder) Add(ordinal uint32, f *segment.Fields) {
	for _, c := range b.columns {
		c.set(ordinal, c.field.Value(f))
	}
}

// End makes the table the account's when all profiles were added.
func (b *Builder) End(all bool) {
	t := b.of
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.look()
	delete(t.building, b.account)
	if !all || b.moot {
		return
	}
	x := &table{columns: b.columns, changed: b.changed}
	for _, c := range x.columns {
		c.built = len(c.values)
	}
	t.drop(b.account)
	// The table asked for longest ago makes room.
	for t.bytes.Load()+x.bytes() > t.limit && len(t.tables) > 0 {
		oldest := b.account
		for account, y := range t.tables {
			if z := t.tables[oldest]; z == nil || y.asked < z.asked {
				oldest = account
			}
		}
		t.drop(oldest)
	}
	if t.bytes.Load()+x.bytes() > t.limit {
		return
	}
	t.asked++
	x.asked = t.asked
	t.tables[b.account] = x
	t.bytes.Add(x.bytes())
}
