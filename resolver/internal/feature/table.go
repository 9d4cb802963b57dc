package feature

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Table has the entities of one kind of an account by name: in memory as T, in the store
// as JSON. What it returns must not be changed: a change is another T that is put in its
// place, for readers may still have the one before.
type Table[T any] struct {
	kind   byte
	rows   map[string]*T
	encode func(any) []byte
}

// NewTable makes an empty table of entities of a kind, see package state.
func NewTable[T any](kind byte) Table[T] {
	return Table[T]{kind: kind, rows: map[string]*T{}, encode: must.JSON}
}

// NewTableOfJSON is NewTable for entities that hold JSON of others, which the store keeps
// byte for byte, see [must.PlainJSON].
func NewTableOfJSON[T any](kind byte) Table[T] {
	return Table[T]{kind: kind, rows: map[string]*T{}, encode: must.PlainJSON}
}

// Get returns the entity of a name, nil if there is none.
func (t *Table[T]) Get(name string) *T { return t.rows[name] }

// Len is how many entities there are.
func (t *Table[T]) Len() int { return len(t.rows) }

// All are the entities with their names, in no order.
func (t *Table[T]) All() iter.Seq2[string, *T] { return maps.All(t.rows) }

// Sorted are copies of the entities in order.
func (t *Table[T]) Sorted(compare func(x, y T) int) []T {
	out := make([]T, 0, len(t.rows))
	for _, v := range t.rows {
		out = append(out, *v)
	}
	slices.SortFunc(out, compare)
	return out
}

// Put sets the entity of a name.
func (t *Table[T]) Put(tx *Tx, name string, v *T) {
	t.rows[name] = v
	tx.Store.PutEntity(state.EntityKey(tx.Account, t.kind, name), t.encode(v))
}

// Delete removes the entity of a name, if there is one.
func (t *Table[T]) Delete(tx *Tx, name string) {
	delete(t.rows, name)
	tx.Store.PutEntity(state.EntityKey(tx.Account, t.kind, name), nil)
}

// Load takes back an entity that a checkpoint has.
func (t *Table[T]) Load(name string, value []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(value, v); err != nil {
		return nil, err
	}
	t.rows[strings.Clone(name)] = v
	return v, nil
}

// LoadKind is Load if the entity is of the table's kind, and known is false if it is not.
func (t *Table[T]) LoadKind(kind byte, name string, value []byte) (known bool, err error) {
	if kind != t.kind {
		return false, nil
	}
	_, err = t.Load(name, value)
	return true, err
}

// Hash gives put all names and entities, in order of names.
func (t *Table[T]) Hash(put func([]byte)) {
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		put([]byte(name))
		put(must.JSON(t.rows[name]))
	}
}
