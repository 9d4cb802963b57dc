package state

import (
	"bytes"
	"math/rand/v2"
	"testing"

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
