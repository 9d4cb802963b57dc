package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// BenchmarkAlone is the way of requests through a node that owns all there is:
// where partitions come and go costs nothing where they do not.
func BenchmarkAlone(b *testing.B) {
	f := &fixture{fs: vfs.NewMem(), history: &fake.History{Rand: rand.New(rand.NewPCG(1, 1))}, now: time.UnixMilli(1_000_000_000_000)}
	var err error
	if f.log, err = file.Open("log", file.Options{FS: f.fs, Partitions: 1}); err != nil {
		b.Fatal(err)
	}
	n, err := f.open()
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = n.Close(context.Background())
		_ = f.log.Close()
	}()
	ctx := context.Background()
	if _, err := n.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		b.Fatal(err)
	}
	reply, err := n.Command(ctx, testAccount, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "s", Definition: json.RawMessage(`{"match":"all","conditions":[{"kind":"activity","event":"viewed"}]}`)})
	var seg resolver.Segment
	if err == nil {
		err = json.Unmarshal(reply, &seg)
	}
	if err != nil {
		b.Fatal(err)
	}
	id := []byte(resolver.AppID(testAccount))
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := n.Read(ctx, testAccount, func(*resolver.View) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("count", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, known, err := n.CountMembers(ctx, testAccount, seg.ID, 0); err != nil || !known {
				b.Fatal(err)
			}
		}
	})
	b.Run("app", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := n.App(id); !ok {
				b.Fatal("no app")
			}
		}
	})
	b.Run("submit", func(b *testing.B) {
		b.ReportAllocs()
		var out resolver.Outcome
		var rec []byte
		i := uint64(0)
		for b.Loop() {
			i++
			env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, StampMs: f.now.UnixMilli()}
			binary.LittleEndian.PutUint64(env.ID[:], i)
			rec = fake.AppendEvents(env.Append(rec[:0]), []eventlog.Event{fake.Event("email", "a@x.io")})
			if err := n.Submit(ctx, testAccount, rec, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
}
