package checkpoint

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/node"
)

// lastRow is a history that keeps nothing.
type lastRow struct {
	query.History
	next int64
}

func (h *lastRow) Position(context.Context, int) (int64, error) { return h.next, nil }

func (h *lastRow) Append(_ context.Context, b *query.Batch) error {
	h.next = b.To
	return nil
}

// TestR1UploadSendsWhatChanged: a node uploads checkpoints of a state on a real
// disk, each sending little where little has changed, and another node takes it
// over from them. With MUSTER_PROFILES=1000000 it is the measurement of
// docs/decisions/0026-shared-checkpoints.md.
func TestR1UploadSendsWhatChanged(t *testing.T) {
	profiles := 20_000
	if s := os.Getenv("MUSTER_PROFILES"); s != "" {
		if _, err := fmt.Sscan(s, &profiles); err != nil {
			t.Fatal(err)
		}
	}
	const account, batch = 7, 1000
	ctx, dir := context.Background(), t.TempDir()
	log, err := file.Open(filepath.Join(dir, "log"), file.Options{FS: vfs.Default})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	history := &lastRow{}
	if err := os.Mkdir(filepath.Join(dir, "shared"), 0o700); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	// Not servertest.Node: the nodes share a log, and what they write to a disk is measured.
	open := func(name string) (*node.Node, *Store) {
		bucket, err := blobtree.OpenBucket(ctx, "file://"+filepath.ToSlash(dir)+"/shared")
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Options{Bucket: bucket, Log: "log", FS: vfs.Default, Rand: rand.Reader, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		n, err := node.Open(ctx, node.Options{FS: vfs.Default, Dir: filepath.Join(dir, name), Log: log, History: history,
			Now: time.Now, Rand: rand.Reader, Cluster: node.Cluster{Shared: s}, Logger: logger, CheckpointInterval: time.Hour, GenerationBytes: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return n, s
	}
	a, store := open("a")
	zeros := make([]byte, 32)
	if _, err := a.Command(ctx, account, resolver.CommandBootstrap, resolver.Bootstrap{
		ApplyVersion: resolver.ApplyVersion, Company: resolver.Company{ID: "com_1", Name: "Test"},
		HashKey: hex.EncodeToString(zeros[:16]), SecretHash: hex.EncodeToString(zeros), Settings: resolver.DefaultSettings(),
		User: access.User{ID: "usr_1", Email: "a@b.c"}, APIKey: access.APIKey{ID: "key_1"},
	}); err != nil {
		t.Fatal(err)
	}
	id := uint64(0)
	// see has some people do something, from one on, so many apart.
	see := func(first, count, apart int) {
		for done := 0; done < count; {
			env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, StampMs: time.Now().UnixMilli()}
			id++
			copy(env.ID[:], fmt.Sprintf("%016d", id))
			n := min(batch, count-done)
			rec := eventlog.AppendEventCount(env.Append(nil), n)
			for range n {
				who := first + done*apart
				rec = eventlog.AppendEvent(rec, &eventlog.Event{
					Type: []byte("viewed"), Email: fmt.Appendf(nil, "person%d@example.com", who), ExternalID: fmt.Appendf(nil, "id-%d", who),
					Attributes: fmt.Appendf(nil, `{"city":"City %d","plan":"plan %d","visits":%d}`, who%1000, who%7, id),
				})
				done++
			}
			var out resolver.Outcome
			if err := a.Submit(ctx, account, rec, &out); err != nil {
				t.Fatal(err)
			}
		}
	}
	// upload writes a checkpoint and waits for it to be stored.
	upload := func(what string) (sent int64) {
		before, begun := store.Stats(), time.Now()
		if err := a.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		written := time.Since(begun)
		eventually.Holds(t, "the checkpoint is stored", func() bool {
			st := a.Stats()[0]
			if st.SharedFailures > 0 {
				t.Fatal("the upload failed")
			}
			return st.SharedOffset == st.LastCheckpoint
		})
		after := store.Stats()
		sent = after.SentBytes - before.SentBytes
		t.Logf("%-28s %4d objects, %11d bytes; written in %v, stored %v later", what, after.Sent-before.Sent, sent, written.Round(time.Millisecond), (time.Since(begun) - written).Round(time.Millisecond))
		return sent
	}
	see(0, profiles, 1)
	upload("all profiles")
	// Pebble may be merging files yet, which are then other ones.
	one := int64(1) << 60
	for i := range 3 {
		see(i, 1, 1)
		one = min(one, upload("one event"))
	}
	see(0, profiles/100, 100)
	upload("one event of a hundredth")
	see(profiles, profiles/100, 1)
	upload("a hundredth of new profiles")
	total := size(t, filepath.Join(dir, "a", "p0", "checkpoints", fmt.Sprintf("%020d", a.Stats()[0].LastCheckpoint)))
	t.Logf("the last checkpoint has %d bytes", total)
	for i := 3; i < 30 && one > total/20+64<<10; i++ { // Pebble takes its time
		see(i, 1, 1)
		one = min(one, upload("one event"))
	}
	if one > total/20+64<<10 {
		t.Errorf("%d bytes were sent after one event, of a checkpoint of %d", one, total)
	}
	want := a.Stats()[0].Profiles
	if err := a.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"from shared storage", "from its own disk"} {
		begun := time.Now()
		b, store := open("b")
		t.Logf("another node took it over %s in %v, %d bytes fetched", how, time.Since(begun).Round(time.Millisecond), store.Stats().FetchedBytes)
		if got := b.Stats()[0]; got.Profiles != want || got.Records != 0 {
			t.Errorf("it has %+v, not %d profiles", got, want)
		}
		if err := b.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := blobtree.Files(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f)))
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}
