package state

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestLoadingLeavesTheCache: what a start reads once takes no more of the cache of blocks than
// there is beside memtables, and is gone from it afterwards; then reads may fill it.
func TestLoadingLeavesTheCache(t *testing.T) {
	const cacheBytes, stored = 32 << 20, 8 << 20
	fs := vfs.NewMem()
	open := func() *Store {
		t.Helper()
		s, err := Open(fs, "live", cacheBytes, quiet{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	random := rand.NewChaCha8([32]byte{1})
	value := make([]byte, 1<<10)
	for i := range stored / len(value) {
		_, _ = random.Read(value)
		key := binary.BigEndian.AppendUint64([]byte{TableHeader}, uint64(i))
		if err := s.DB.Set(key, value, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DB.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer s.Close()
	read := func() (cached int64) {
		t.Helper()
		if err := s.Each(TableHeader, func(uint64, []byte, []byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		return s.DB.Metrics().BlockCache.Size
	}
	done := s.Loading()
	if cached := read(); cached < cacheBytes/16 || cached > cacheBytes/8+1<<20 {
		t.Errorf("%d bytes are cached while the store is loaded, of a cache with %d", cached, cacheBytes/8)
	}
	done()
	if cached := s.DB.Metrics().BlockCache.Size; cached > 1<<20 {
		t.Errorf("%d bytes are cached when the store is loaded", cached)
	}
	if cached := read(); cached < stored/2 {
		t.Errorf("%d bytes are cached afterwards, of %d that were read", cached, stored)
	}
}
