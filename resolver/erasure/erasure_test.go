package erasure

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

var hasher = identifier.NewHasher([16]byte{1})

func newWorld(t *testing.T) *featuretest.World[*State] {
	return featuretest.New(t, Commands, func(*state.Store) *State {
		return New(featuretest.Account, func() identifier.Hasher { return hasher })
	})
}

// TestErasureOfHostileHash: whatever stands where a hash should, it names no
// erasure. Apply must not fail on it: the record would stop every start.
func TestErasureOfHostileHash(t *testing.T) {
	w := newWorld(t)
	for n := range 200 {
		for _, c := range []string{"a", "0", "g", "\x00", "ü"} {
			w.Refused("not_found", CommandLift, Lift{Hash: strings.Repeat(c, n) + "a"})
		}
	}
}

// TestMarkKeepsOutUntilRevoked: a mark keeps an identifier out; what the person had refused
// holds for the profile that has it after the mark was revoked, once, and is loaded as it
// was.
func TestMarkKeepsOutUntilRevoked(t *testing.T) {
	w := newWorld(t)
	var buf []byte
	h, _ := hasher.HashIdentifier(identifier.Email, []byte("a@x.io"), &buf)
	person := profile.Document{Consents: []profile.Consent{{Channel: profile.ChannelEmail, Status: profile.ConsentUnsubscribed, SinceMs: 5}}}
	person.Suppress(profile.Suppression{Channel: profile.ChannelSMS, Reason: profile.SuppressionComplained, SinceMs: 6}, state.ApplyVersion)
	tx := w.Tx()
	task := &Task{UpTo: tx.Offset + 1, Ordinals: []uint32{3}}
	w.State.KeepOut(tx, task, identifier.Email, h, RefusedBy(&person))
	w.State.Begin(tx, task)
	if list := w.State.List("", 10); !w.State.Erased(h) || w.State.Pending() != 1 || len(list) != 1 || list[0].Hash != hex.EncodeToString(h[:]) {
		t.Fatalf("%+v, %d erasures are pending", list, w.State.Pending())
	}
	var d profile.Document
	if w.State.Restore(w.Tx(), &d, h) {
		t.Fatal("a mark that keeps an identifier out restores what was refused")
	}
	w.Must(CommandLift, Lift{Value: "A@x.io"})
	w.Refused("not_found", CommandLift, Lift{Kind: "email", Value: "a@x.io"})
	loaded := newWorld(t)
	for key, value := range w.Store.Entities {
		if known, err := loaded.State.Load(key[state.KeyHead], key[state.KeyHead+1:], value); !known || err != nil {
			t.Fatal(key, err)
		}
	}
	if loaded.Hash() != w.Hash() || loaded.State.Newest() != task.UpTo {
		t.Fatal("the state is not loaded as it was")
	}
	if !w.State.Restore(w.Tx(), &d, h) || !d.Unsubscribed(profile.ChannelEmail) || d.GravestSuppression(profile.ChannelSMS) != profile.SuppressionComplained {
		t.Fatalf("%+v", d)
	}
	if w.State.Erased(h) || w.State.Restore(w.Tx(), &d, h) || len(w.State.revoked) != 0 {
		t.Fatal("the mark is left")
	}
	if newest := w.State.Newest(); newest != task.UpTo {
		t.Fatalf("without its mark the newest erasure is below %d, not %d", newest, task.UpTo)
	}
}

// TestBatchIsDone: what was refused because of erased persons is in a batch with their
// erasures, and leaves the state once the batch is done.
func TestBatchIsDone(t *testing.T) {
	w := newWorld(t)
	tx := w.Tx()
	task := &Task{UpTo: tx.Offset + 1, Ordinals: []uint32{3, 4}}
	h := hasher.Sum([]byte("x"))
	w.State.KeepOut(tx, task, identifier.Phone, h, nil)
	w.State.Begin(tx, task)
	w.State.EndRecord(tx) // nothing was refused
	tx = w.Tx()
	w.State.NoteNamed(h)
	w.State.EndRecord(tx)
	b, ok := w.State.Next(0, true)
	ordinals, below, err := w.State.Persons(&b)
	if !ok || b.Erasures != 1 || len(ordinals) != 2 || below[h] != task.UpTo || err != nil {
		t.Fatalf("%+v, %v, %v, %v", b, ordinals, below, err)
	}
	if from, end := b.LogRange(0); from != 0 || end != tx.Offset+1 {
		t.Fatalf("the log is redacted from %d to %d", from, end)
	}
	w.Must(CommandDone, b.Done())
	if b, ok := w.State.Next(0, true); ok || w.State.Pending() != 0 || w.State.DoneBelow() != task.UpTo {
		t.Fatalf("%+v is left", b)
	}
}
