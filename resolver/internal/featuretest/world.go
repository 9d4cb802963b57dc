// Package featuretest runs a feature of the state machine without the machine, for its tests.
package featuretest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Account is the number of the account that the feature's state is of.
const Account = 7

// Hashed is a state that can be compared.
type Hashed interface {
	// Hash is as in [feature.State].
	Hash(put func([]byte)) error
}

// World is one account's state of a feature, with a store in memory.
type World[S Hashed] struct {
	T     testing.TB
	State S
	Store *state.Store
	Now   int64 // log time, Unix ms
	Rules int   // the version of the rules, the newest at first
	// Begin is called before each record, if it is set.
	Begin func()

	commands map[string]feature.Command[S]
	records  uint64
}

// New is a world in which commands change what fresh returns.
func New[S Hashed](t testing.TB, commands map[string]feature.Command[S], fresh func(*state.Store) S) *World[S] {
	t.Helper()
	store, err := state.Open(vfs.NewMem(), "live", 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.DB.Close() })
	return &World[S]{T: t, State: fresh(store), Store: store, Now: 1_000_000_000_000, Rules: state.ApplyVersion, commands: commands}
}

// Tx begins the next record.
func (w *World[S]) Tx() *feature.Tx {
	w.records++
	if w.Begin != nil {
		w.Begin()
	}
	tx := &feature.Tx{Account: Account, AtMs: w.Now, Offset: int64(w.records), Store: w.Store, Rules: w.Rules}
	binary.LittleEndian.PutUint64(tx.Record[:], w.records)
	return tx
}

// Do carries out a command. One that is refused must change nothing.
func (w *World[S]) Do(name string, args any) (reply any, refusal *refuse.Refusal) {
	w.T.Helper()
	tx, before := w.Tx(), w.Hash()
	refusal, err := w.commands[name](w.State, tx, must.JSON(args))
	if err != nil {
		w.T.Fatal(err)
	}
	if refusal != nil && w.Hash() != before {
		w.T.Fatalf("%s was refused and changed the state", name)
	}
	return tx.Reply, refusal
}

// Must carries out a command that must succeed, and returns the id in its answer, if there
// is one.
func (w *World[S]) Must(name string, args any) (id string) {
	w.T.Helper()
	reply, refusal := w.Do(name, args)
	if refusal != nil {
		w.T.Fatalf("%s %s: %v", name, must.JSON(args), refusal)
	}
	ids, _ := reply.(map[string]string)
	return ids["id"]
}

// Refused carries out a command that must be refused with the code.
func (w *World[S]) Refused(code, name string, args any) {
	w.T.Helper()
	if _, r := w.Do(name, args); r == nil || r.Code != code {
		w.T.Fatalf("%s %s: %v, want %s", name, must.JSON(args), r, code)
	}
}

// Hash is of the whole state.
func (w *World[S]) Hash() string {
	w.T.Helper()
	h := sha256.New()
	if err := w.State.Hash(func(b []byte) { fmt.Fprintf(h, "%d %s", len(b), b) }); err != nil {
		w.T.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TextHash is the SHA-256 of a text in hexadecimal, as commands bring those of keys.
func TextHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
