package dedup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

func hashOf(i int) identifier.Hash {
	return identifier.NewHasher([16]byte{1}).Sum(fmt.Appendf(nil, "key %d", i))
}

// TestKeysAgreeWithMap: whatever went to runs, was merged, or is still in memory, each
// key has its newest answer.
func TestKeysAgreeWithMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	fs, keys, want := vfs.NewMem(), NewKeys(), map[identifier.Hash]Answer{}
	open := func(name string, write func(path string) error) *Run {
		t.Helper()
		if err := write(name); err != nil {
			t.Fatal(err)
		}
		r, err := OpenRun(fs, name, name)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for round := range 12 {
		for range 700 {
			h, v := hashOf(rng.IntN(5000)), Answer{AtMs: int64(round + 1), Ordinal: rng.Uint32()}
			keys.Put(h, v)
			want[h] = v
		}
		switch sealed := keys.Freeze(); round % 4 {
		case 1, 2: // the checkpoint writes a run
			r := open(fmt.Sprint("run ", round), func(path string) error { return WriteRun(fs, path, sealed, func() {}) })
			keys.SetRuns(append(keys.Runs, r))
		case 3: // and merges all of them
			r := open(fmt.Sprint("run ", round), func(path string) error { return WriteRun(fs, path, sealed, func() {}) })
			runs := append(keys.Runs, r)
			keys.SetRuns([]*Run{open(fmt.Sprint("merged ", round), func(path string) error { return MergeRuns(fs, path, runs, 0, func() {}) })})
		case 0: // the checkpoint has failed and is done again
			r := open(fmt.Sprint("again ", round), func(path string) error { return WriteRun(fs, path, sealed, func() {}) })
			keys.SetRuns(append(keys.Runs, r))
		}
		for i := range 5200 {
			h := hashOf(i)
			v, known := want[h]
			if got, ok, err := keys.Get(h); err != nil || ok != known || got != v {
				t.Fatalf("round %d, key %d: %v %v %v, want %v %v", round, i, got, ok, err, v, known)
			}
		}
		n, last := 0, identifier.Hash{}
		err := keys.Each(func(h identifier.Hash, v Answer) {
			if n++; v != want[h] || string(h[:]) <= string(last[:]) {
				t.Fatalf("round %d: %x has %v, want %v", round, h, v, want[h])
			}
			last = h
		})
		if err != nil || n != len(want) {
			t.Fatalf("round %d: %d keys of %d: %v", round, n, len(want), err)
		}
	}
}

// TestMergeDropsOldKeys: keys that no longer count are left out. The caller may pause after each
// block that is written, and while the keys are sorted.
func TestMergeDropsOldKeys(t *testing.T) {
	fs, keys := vfs.NewMem(), NewKeys()
	for i := range 1000 {
		keys.Put(hashOf(i), Answer{AtMs: int64(i)})
	}
	worked := 0
	if err := WriteRun(fs, "a", keys.Freeze(), func() { worked++ }); err != nil {
		t.Fatal(err)
	}
	if blocks := (1000 + runBlockEntries - 1) / runBlockEntries; worked <= blocks {
		t.Errorf("the caller may pause %d times, with %d blocks", worked, blocks)
	}
	r, err := OpenRun(fs, "a", "a")
	if err != nil {
		t.Fatal(err)
	}
	worked = 0
	if err := MergeRuns(fs, "b", []*Run{r}, 300, func() { worked++ }); err != nil {
		t.Fatal(err)
	}
	if blocks := (699 + runBlockEntries - 1) / runBlockEntries; worked != blocks {
		t.Errorf("the caller may pause %d times, with %d merged blocks", worked, blocks)
	}
	if r, err = OpenRun(fs, "b", "b"); err != nil || r.Count != 699 || r.Newest != 999 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// TestRunOfOlderVersion: a run whose filter older versions wrote answers as it did, and is merged
// into one of this version. The filter is made here by their rule.
func TestRunOfOlderVersion(t *testing.T) {
	const n = 3000
	fs, keys := vfs.NewMem(), NewKeys()
	for i := range n {
		keys.Put(hashOf(i), Answer{AtMs: int64(i), Ordinal: uint32(i)})
	}
	if err := WriteRun(fs, "a", keys.Freeze(), func() {}); err != nil {
		t.Fatal(err)
	}
	b := readAll(t, fs, "a")
	words := int(binary.LittleEndian.Uint64(b[len(b)-16:]))
	blocks := (n + runBlockEntries - 1) / runBlockEntries
	start := len(b) - runFooterSize - 16*blocks - 8*words
	clear(b[start:][:8*words])
	for i := range n {
		h := hashOf(i)
		bits := binary.LittleEndian.Uint64(h[:8])
		line := int(uint64(binary.LittleEndian.Uint32(h[12:])) * uint64(words/8) >> 32)
		for range 6 {
			at := start + 64*line + int(bits>>6&7)*8 + int(bits&63)/8
			b[at] |= 1 << (bits & 7)
			bits >>= 9
		}
	}
	copy(b[len(b)-8:], "RUN1")
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[start:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
	write(t, fs, "old", b)
	old, err := OpenRun(fs, "old", "old")
	if err != nil {
		t.Fatal(err)
	}
	if err := MergeRuns(fs, "new", []*Run{old}, -1, func() {}); err != nil {
		t.Fatal(err)
	}
	merged, err := OpenRun(fs, "new", "new")
	if err != nil {
		t.Fatal(err)
	}
	if !old.filter.scattered || merged.filter.scattered {
		t.Error("the versions of the files are not what they are to be")
	}
	passed := 0
	for i := range 2 * n {
		for _, r := range []*Run{old, merged} {
			v, ok, err := r.get(hashOf(i))
			if want := (Answer{AtMs: int64(i), Ordinal: uint32(i)}); err != nil || ok != (i < n) || ok && v != want {
				t.Fatalf("%s, key %d: %v, %v, %v", r.Name, i, v, ok, err)
			}
			if i >= n && r.filter.has(hashOf(i)) {
				passed++
			}
		}
	}
	if passed > n/20 {
		t.Errorf("the filters let %d of %d strange keys pass", passed, 2*n)
	}
}

func readAll(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
}

// TestDamagedRun: a byte that changed anywhere is noticed, at the opening or by Get.
func TestDamagedRun(t *testing.T) {
	fs, keys := vfs.NewMem(), NewKeys()
	for i := range 300 {
		keys.Put(hashOf(i), Answer{AtMs: int64(i)})
	}
	if err := WriteRun(fs, "a", keys.Freeze(), func() {}); err != nil {
		t.Fatal(err)
	}
	info, err := fs.Stat("a")
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(0); at < info.Size(); at += 7 {
		flip(t, fs, "a", at)
		r, err := OpenRun(fs, "a", "a")
		for i := 0; i < 300 && err == nil; i++ {
			_, _, err = r.get(hashOf(i))
		}
		if !errors.Is(err, statefiles.ErrDamaged) {
			t.Fatalf("byte %d of %d: %v", at, info.Size(), err)
		}
		flip(t, fs, "a", at)
	}
}

func flip(t *testing.T, fs vfs.FS, path string, at int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 0x10
	if _, err2 := f.WriteAt(b[:], at); err != nil || err2 != nil || f.Close() != nil {
		t.Fatal(err, err2)
	}
}
