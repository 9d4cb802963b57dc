package fieldcolumns

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

const account = 7

var fields = []string{"first_name", "attributes.plan"}

// people are the profiles of an account, with their names.
type people []string

func (p people) fields(ordinal uint32) (*segment.Fields, error) {
	if int(ordinal) >= len(p) || p[ordinal] == "" {
		return nil, nil
	}
	return &segment.Fields{FirstName: []byte(p[ordinal]), Attributes: fmt.Appendf(nil, `{"plan":%q}`, p[ordinal][:1])}, nil
}

func (p people) build(t *Tables, wanted ...string) *Builder {
	b := t.Begin(account, uint32(len(p)), wanted, fields)
	if b == nil {
		return nil
	}
	for o := range p {
		if f, _ := p.fields(uint32(o)); f != nil {
			b.Add(uint32(o), f)
		}
	}
	return b
}

// with are the ordinals of a name.
func (p people) with(name string) *roaring.Bitmap {
	b := roaring.New()
	for o, have := range p {
		if have == name {
			b.Add(uint32(o))
		}
	}
	return b
}

func (p people) compare(t *testing.T, v *View) {
	t.Helper()
	for i := range names {
		name := fmt.Sprintf("n%d", i)
		if got := v.Members(func(value []byte) bool { return string(value) == name }); !got.Equals(p.with(name)) {
			t.Fatalf("%v are named %s, want %v", got, name, p.with(name))
		}
	}
}

const names = 20

func name(rng *rand.Rand) string { return fmt.Sprintf("n%d", rng.IntN(names)) }

// TestS1ColumnsAfterChanges: a table that was refreshed has what the profiles have, and
// one that was lent stays as it was.
func TestS1ColumnsAfterChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		tables := New(1 << 20)
		p := make(people, rng.IntN(3*pageRows))
		for o := range p {
			p[o] = name(rng)
		}
		b := p.build(tables, "first_name")
		change := func() {
			for range rng.IntN(100) {
				o := rng.IntN(len(p) + 2)
				for o >= len(p) {
					p = append(p, "")
				}
				p[o] = name(rng)
				if rng.IntN(5) == 0 {
					p[o] = "" // merged
				}
				tables.Mark(account, uint32(o))
			}
		}
		change() // while it is built
		b.End(true)
		var lent []*View
		var were []people
		for range 5 {
			change()
			for left := 1; left > 0; {
				var err error
				if left, err = tables.Refresh(account, 1+rng.IntN(40), p.fields); err != nil {
					t.Fatal(err)
				}
			}
			v, ok := tables.View(account, "first_name")
			if !ok {
				t.Fatal("there is no column")
			}
			lent, were = append(lent, v), append(were, append(people(nil), p...))
		}
		for i := range lent {
			were[i].compare(t, lent[i])
		}
	}
}

func TestNoColumnWhileChangesAreLeft(t *testing.T) {
	tables := New(1 << 20)
	p := people{"ada", "bob"}
	p.build(tables, "first_name").End(true)
	if _, ok := tables.View(account, "first_name"); !ok {
		t.Error("no column although nothing has changed")
	}
	if _, ok := tables.View(account, "last_name"); ok {
		t.Error("a column that no query asked for")
	}
	if _, ok := tables.View(account+1, "first_name"); ok {
		t.Error("another account's column")
	}
	tables.Mark(account, 1)
	if _, ok := tables.View(account, "first_name"); ok {
		t.Error("a column that is not right")
	}
}

// TestTablesAreDropped: what cannot be kept right cheaply, or must not be kept, is not.
func TestTablesAreDropped(t *testing.T) {
	for why, drop := range map[string]func(*Tables){
		"erased": func(x *Tables) { x.Forget(account) },
		"changed too often": func(x *Tables) {
			for o := range uint32(changedLeast + 1) {
				x.Mark(account, o)
			}
		},
		"cannot be read": func(x *Tables) {
			x.Mark(account, 0)
			had := len(x.tables) > 0
			if _, err := x.Refresh(account, 1, func(uint32) (*segment.Fields, error) { return nil, fmt.Errorf("no disk") }); had != (err != nil) {
				t.Errorf("there was a table: %t, error %v", had, err)
			}
		},
	} {
		tables := New(1 << 20)
		people{"ada"}.build(tables, "first_name").End(true)
		if tables.Bytes() == 0 {
			t.Errorf("%s: a table takes nothing", why)
		}
		if drop(tables); len(tables.tables) > 0 {
			t.Errorf("%s: the table is kept", why)
		}
		if _, ok := tables.View(account, "first_name"); ok || tables.Bytes() != 0 || tables.any.Load() {
			t.Errorf("%s: the table is kept, %d bytes", why, tables.Bytes())
		}
		b := people{"ada"}.build(tables, "first_name")
		drop(tables)
		b.End(true)
		if _, ok := tables.View(account, "first_name"); ok && why != "cannot be read" {
			t.Errorf("%s while it was built: the table is kept", why)
		}
	}
}

func TestTablesThatAreNotBuilt(t *testing.T) {
	tables := New(1 << 20)
	b := people{"ada"}.build(tables, "first_name")
	if people([]string{"ada"}).build(tables, "first_name") != nil {
		t.Error("two are built at once")
	}
	b.End(false)
	if _, ok := tables.View(account, "first_name"); ok || tables.any.Load() {
		t.Error("a scan that stopped made a table")
	}
	if New(1).Begin(account, 10, []string{"first_name"}, nil) != nil {
		t.Error("a table without room")
	}
	if tables.Begin(account, 10, []string{"email"}, nil) != nil || tables.any.Load() {
		t.Error("a table without columns")
	}
}

// TestColumnsHaveBounds: a field with too many values is not kept, beside others that are;
// the table asked for longest ago makes room.
func TestColumnsHaveBounds(t *testing.T) {
	tables := New(1 << 20)
	p := make(people, maxValues+1)
	for o := range p {
		p[o] = fmt.Sprintf("p%d", o)
	}
	p.build(tables, "first_name").End(true)
	if _, ok := tables.View(account, "first_name"); ok || !tables.Hopeless(account, "first_name") {
		t.Error("too many values are kept")
	}
	v, ok := tables.View(account, "attributes.plan")
	if !ok || v.Members(func(value []byte) bool { return string(value) == `"p"` }).GetCardinality() != uint64(len(p)) {
		t.Error("another field of the table is not kept")
	}

	tables = New(100_000)
	for a := range uint32(20) {
		b := tables.Begin(a, 1, []string{"first_name"}, nil)
		b.Add(0, &segment.Fields{FirstName: []byte("ada")})
		b.End(true)
		if a > 0 {
			if _, ok := tables.View(0, "first_name"); !ok {
				t.Fatalf("after %d tables: the one that is asked for was dropped", a)
			}
		}
	}
	if n := tables.Bytes(); n > 100_000 || n < 50_000 {
		t.Errorf("%d bytes are kept", n)
	}
	if _, ok := tables.View(1, "first_name"); ok {
		t.Error("the table asked for longest ago was kept")
	}

	// Values that no profile has any more do not add up for ever.
	tables = New(10 << 20)
	p = people{"ada"}
	p.build(tables, "first_name").End(true)
	for i := range changedLeast + 10 {
		p[0] = fmt.Sprintf("n%d", i)
		tables.Mark(account, 0)
		if _, err := tables.Refresh(account, 1, p.fields); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := tables.View(account, "first_name"); ok {
		t.Error("values that are no profile's are kept for ever")
	}
}

func BenchmarkMembers(b *testing.B) {
	tables := New(64 << 20)
	x := tables.Begin(account, 1_000_000, []string{"first_name"}, nil)
	for o := range uint32(1_000_000) {
		x.Add(o, &segment.Fields{FirstName: fmt.Appendf(nil, "n%d", o*7919%1000)})
	}
	x.End(true)
	for b.Loop() {
		v, _ := tables.View(account, "first_name")
		v.Members(func(value []byte) bool { return value != nil && value[len(value)-1] == '7' })
	}
}
