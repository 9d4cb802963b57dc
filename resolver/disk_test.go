package resolver

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/logbuffer"
	"github.com/musterhq/muster/resolver/internal/state"
)

// TestStoreWaitsForSpace: Pebble's manifest waits for space, tables are tried again,
// and a store that is closed without space ends without calling for the process's end.
func TestStoreWaitsForSpace(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			fs := newScarceFS(vfs.NewMem())
			var said logbuffer.Buffer
			d := state.NewDisk(slog.New(slog.NewTextHandler(&said, nil)))
			s, err := state.OpenOn(d, fs, "live", 1<<20, state.NewPebbleLogger(discard()).Ending(func(why string) { t.Errorf("the process ends: %s", why) }), nil)
			if err != nil {
				t.Fatal(err)
			}
			key, value := []byte("key"), bytes.Repeat([]byte("v"), 1000)
			if err := s.DB.Set(key, value, pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			fs.Full.Store(true)
			fs.Room.Store(1 << 20) // the table is written, the manifest is not
			if err := d.Flush(s.DB); !state.IsFull(err) {
				t.Fatal(err)
			}
			if v, closer, err := s.DB.Get(key); err != nil || !bytes.Equal(v, value) {
				t.Fatal(err)
			} else {
				closer.Close()
			}
			eventually.Holds(t, "the line about the full disk", func() bool { return strings.Contains(said.String(), "is full") })
			if !d.Full() {
				t.Error("the disk does not count as full")
			}
			if again {
				fs.Full.Store(false)
				eventually.Holds(t, "the store writes again", func() bool { return !d.Full() })
				if err := d.Flush(s.DB); err != nil {
					t.Fatal(err)
				}
			}
			d.Close()
			if err := s.DB.Close(); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(said.String(), "is full"); n != 1 {
				t.Errorf("said %d times: %s", n, said.String())
			}
			if !again && d.StoreErr() == nil {
				t.Error("a store whose writes were dropped counts as whole")
			}
		})
	}
}
