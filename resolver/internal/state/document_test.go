package state

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestDocumentsStayAsTheyWereStored: a document reads as it was stored, also after others are
// stored, after checkpoints, after a caller appends to a document that it got, and after it uses
// the bytes that it gave for something else. The bytes of a generation are counted.
func TestDocumentsStayAsTheyWereStored(t *testing.T) {
	s, err := Open(vfs.NewMem(), "state", 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	type handed struct{ block, want []byte }
	rng, a := rand.New(rand.NewPCG(1, 1)), Account{Number: 1}
	want, all := map[uint32][]byte{}, []handed(nil)
	held := map[uint32][2]int{} // bytes that a document holds in this generation: in a slab, and alone
	scratch := make([]byte, 0, slabBytes)
	for step := range 20_000 {
		o := uint32(rng.IntN(3000))
		size := 1 + rng.IntN(400)
		if rng.IntN(500) == 0 {
			size = slabDocument - 2 + rng.IntN(4)
		}
		scratch = scratch[:size]
		for i := range scratch {
			scratch[i] = byte(step)
		}
		b := s.PutDocument(a, o, scratch)
		if h, again := held[o]; again || size > slabDocument {
			held[o] = [2]int{h[0], size}
		} else {
			held[o] = [2]int{size, 0}
		}
		if step%97 == 0 {
			total := int64(0)
			for _, h := range held {
				total += int64(h[0]+h[1]) + docOverhead
			}
			if s.CurrentBytes != total {
				t.Fatalf("step %d: %d bytes are counted, %d are held", step, s.CurrentBytes, total)
			}
		}
		want[o] = bytes.Clone(scratch)
		all = append(all, handed{b, want[o]})
		clear(scratch)
		if rng.IntN(3) == 0 {
			_ = append(all[rng.IntN(len(all))].block, 0xff)
		}
		if step%5000 == 4999 { // what was frozen stays in memory until the next one is done
			s.Freeze()
			s.Thaw()
			clear(held)
		}
		if n := uint32(rng.IntN(3000)); step%5000 < 4000 && want[n] != nil {
			if got, ok := s.Changed(a.DocKey(n)); ok && !bytes.Equal(got, want[n]) {
				t.Fatalf("step %d: document %d is %x, want %x", step, n, got, want[n])
			}
		}
	}
	for i, h := range all {
		if !bytes.Equal(h.block, h.want) || h.block == nil {
			t.Fatalf("document %d was handed out as %x and is %x", i, h.want, h.block)
		}
	}
	if b := s.PutDocument(a, 1, nil); b != nil {
		t.Fatal("a document that is gone has bytes")
	}
}

// TestNewestDocumentIsRead: a document reads as it was stored last, wherever it is: in the present
// generation, in those that a checkpoint writes or has written, in the cache or in Pebble, also one
// that rests for hundreds of generations.
func TestNewestDocumentIsRead(t *testing.T) {
	for seed := range uint64(4) {
		s, err := Open(vfs.NewMem(), "state", 1<<11, nil) // the cache forgets
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		accounts := []Account{{Number: 1}, {Number: 2, Index: 300}}
		type name struct {
			account int
			ordinal uint32
		}
		want, changed := map[name][]byte{}, map[name]int{} // the generation of the last change
		draw := func() name {
			n := name{rng.IntN(2), rng.Uint32N(40)}
			if rng.IntN(2) == 0 {
				n.ordinal = rng.Uint32N(3) * 300 // often the same, on other pages
			}
			return n
		}
		generation, frozen := 0, map[DocKey][]byte(nil)
		for step := range 40_000 {
			n := draw()
			a := accounts[n.account]
			switch what := rng.IntN(100); {
			case what < 25:
				if n.ordinal >= 30 && n.ordinal < 40 && rng.IntN(300) > 0 {
					continue // they rest
				}
				want[n], changed[n] = []byte{byte(step), byte(step >> 8), byte(n.ordinal)}, generation
				if rng.IntN(8) == 0 {
					want[n] = nil
				}
				s.PutDocument(a, n.ordinal, want[n])
			case what < 27 && frozen == nil:
				frozen, _ = s.Freeze()
				generation++
			case what < 30 && frozen != nil:
				for _, a := range accounts {
					for o := range uint32(700) {
						if b, ok := frozen[a.DocKey(o)]; ok && b != nil {
							err = s.DB.Set(DocumentKey(nil, a.Number, o), b, pebble.NoSync)
						} else if ok {
							err = s.DB.Delete(DocumentKey(nil, a.Number, o), pebble.NoSync)
						}
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				s.Thaw()
				frozen = nil
			default:
				if want[n] == nil {
					continue // Pebble says that it is not there
				}
				s.Prefetch(a, n.ordinal)
				got, err := s.Document(a, n.ordinal)
				if err != nil || !bytes.Equal(got, want[n]) {
					t.Fatalf("seed %d, step %d: document %v is %x (%v), want %x", seed, step, n, got, err, want[n])
				}
				if got, err = s.Peek(a, n.ordinal); err != nil || !bytes.Equal(got, want[n]) {
					t.Fatalf("seed %d, step %d: document %v is %x (%v) in a view, want %x", seed, step, n, got, err, want[n])
				}
				_, ok := s.Changed(a.DocKey(n.ordinal))
				if must := changed[n] >= generation-1 || changed[n] == generation-2 && frozen != nil; must && !ok {
					t.Fatalf("seed %d, step %d: document %v of generation %d is in no map in %d", seed, step, n, changed[n], generation)
				}
			}
		}
		if generation < 300 {
			t.Errorf("seed %d: %d generations, want more", seed, generation)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
