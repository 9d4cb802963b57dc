package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/state"
)

// entry is a change with its content, as the naive log of them has it.
type entry struct {
	Change
	content []byte
}

// naive keeps everything, and works out again what there is room for.
type naive struct{ all []entry }

// kept are the changes that there is room for: the newest.
func (n *naive) kept() []entry {
	definitions := 0
	for i := len(n.all) - 1; i >= 0; i-- {
		definitions += len(n.all[i].Definition)
		if len(n.all)-i > 1 && (definitions > MaxDefinitionBytes || len(n.all)-i > MaxChanges) {
			return n.all[i+1:]
		}
	}
	return n.all
}

// contents are what is kept of the contents of changes: the newest, none that is too long.
func (n *naive) contents() map[uint64][]byte {
	out, size := map[uint64][]byte{}, 0
	for _, x := range slices.Backward(n.kept()) {
		if len(x.content) > MaxContent || len(x.content) == 0 {
			continue
		}
		if size += len(x.content); size > MaxContentBytes {
			break
		}
		out[x.Seq] = x.content
	}
	return out
}

// TestAuditMatchesNaive: the log has the newest changes and contents that there is room for,
// the newest first, and a state that is loaded has the same.
func TestAuditMatchesNaive(t *testing.T) {
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 6))
		w := featuretest.New(t, nil, func(s *state.Store) *State { return New(featuretest.Account, s) })
		var n naive
		for i := range 350 + rng.IntN(100) {
			w.Now++
			c := Change{By: Author{ByUser, "usr_1"}, Action: "x.update", Kind: []string{"segment", "flow", "user"}[rng.IntN(3)], ID: fmt.Sprint(rng.IntN(3)), Keeps: rng.IntN(4) > 0}
			var content []byte
			switch c.Kind {
			case "segment":
				c.Definition = text(rng, maxDefinition+1000)
			case "flow":
				content = text(rng, MaxContent+10_000)
			}
			kept := entry{c, content}
			if kept.Seq, kept.AtMs = uint64(i+1), w.Now; len(c.Definition) > maxDefinition {
				kept.Definition = nil
			}
			if !c.Keeps {
				kept.content = nil
			}
			n.all = append(n.all, kept)
			w.State.Add(w.Tx(), &c, content)
		}
		compare(t, w.State, &n)
		before := w.Hash()
		again := New(featuretest.Account, w.Store)
		for _, x := range n.kept() {
			b, err := w.Store.Entity(again.key(x.Seq))
			if err != nil {
				t.Fatal(err)
			}
			if known, err := again.Load(state.EntityChange, "", b); !known || err != nil {
				t.Fatal(known, err)
			}
		}
		compare(t, again, &n)
		if w.State = again; w.Hash() != before {
			t.Fatalf("seed %d: the state that was loaded is another one", seed)
		}
	}
}

// text is JSON of about so many bytes at most, and of half as many at least.
func text(rng *rand.Rand, most int) []byte {
	return append(append([]byte{'"'}, bytes.Repeat([]byte{'a' + byte(rng.IntN(26))}, most/2+rng.IntN(most/2))...), '"')
}

func compare(t *testing.T, s *State, n *naive) {
	t.Helper()
	kept, contents := n.kept(), n.contents()
	for _, of := range []struct{ kind, id string }{{"", ""}, {"segment", ""}, {"flow", "1"}, {"user", "2"}} {
		var want []entry
		for _, x := range slices.Backward(kept) {
			if (of.kind == "" || x.Kind == of.kind) && (of.id == "" || x.ID == of.id) {
				want = append(want, x)
			}
		}
		var have []Change
		for before := uint64(0); ; {
			page, err := s.Changes(of.kind, of.id, before, 7)
			if err != nil {
				t.Fatal(err)
			}
			if have = append(have, page...); len(page) < 7 {
				break
			}
			before = page[6].Seq
		}
		if len(have) != len(want) {
			t.Fatalf("%+v: %d changes, want %d", of, len(have), len(want))
		}
		for i, x := range want {
			if have[i].Seq != x.Seq || have[i].AtMs != x.AtMs || !bytes.Equal(have[i].Definition, x.Definition) || have[i].ContentBytes != len(x.content) {
				t.Fatalf("%+v: change %d is %d of %d ms, want %d of %d ms", of, i, have[i].Seq, have[i].AtMs, x.Seq, x.AtMs)
			}
		}
		if of.kind != "flow" {
			continue
		}
		versions, err := s.Versions(of.kind, of.id, 0, len(n.all))
		if err != nil {
			t.Fatal(err)
		}
		want = slices.DeleteFunc(want, func(x entry) bool { return len(x.content) == 0 })
		if len(versions) != len(want) {
			t.Fatalf("%d versions, want %d", len(versions), len(want))
		}
		for i, v := range versions {
			if !bytes.Equal(v.Content, contents[v.Seq]) {
				t.Fatalf("version %d has %d bytes, want %d", i, len(v.Content), len(contents[v.Seq]))
			}
		}
	}
}

// TestSignedArguments: the actor of a command is read from its arguments, and the command reads
// the same of them as before.
func TestSignedArguments(t *testing.T) {
	by := Author{ByKey, "key_1"}
	for _, args := range []any{struct{}{}, map[string]any{"id": "seg_1", "name": "x"}, map[string]any{"id": 7, "group": "g"}} {
		signed := Sign(args, by)
		got, ok := ReadSigned(signed)
		if !ok || got.By != by || !got.Keeps {
			t.Fatalf("%s: %+v %v", signed, got, ok)
		}
		var have map[string]any
		if err := json.Unmarshal(signed, &have); err != nil {
			t.Fatal(err)
		}
		if delete(have, "_by"); fmt.Sprint(have) != fmt.Sprint(args) && len(have) > 0 {
			t.Errorf("%s has other arguments than %v", signed, args)
		}
	}
	if Sign([]int{1}, by) != nil {
		t.Error("a list is signed")
	}
	for _, args := range []string{`{}`, `{"_by":7}`, `{"_by":null}`, `{"name":"\"_by\":"}`} {
		if _, ok := ReadSigned([]byte(args)); ok {
			t.Errorf("%s is signed", args)
		}
	}
}
