package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// movedLog is a log that continues where another one ended.
type movedLog struct {
	eventlog.Log
	base int64
}

func (l movedLog) Append(ctx context.Context, partition int, data []byte) (int64, error) {
	off, err := l.Log.Append(ctx, partition, data)
	return off + l.base, err
}

func (l movedLog) Read(partition int, from int64) (eventlog.Reader, error) {
	r, err := l.Log.Read(partition, from-l.base)
	return movedReader{r, l.base}, err
}

func (l movedLog) Bounds(ctx context.Context, partition int) (int64, int64, error) {
	start, end, err := l.Log.Bounds(ctx, partition)
	return start + l.base, end + l.base, err
}

func (l movedLog) Trim(partition int, before int64) error {
	return l.Log.Trim(partition, before-l.base)
}

type movedReader struct {
	eventlog.Reader
	base int64
}

func (r movedReader) Next(ctx context.Context) (eventlog.Entry, error) {
	e, err := r.Reader.Next(ctx)
	e.Offset += r.base
	return e, err
}

// storedHistory has all rows below an offset already.
type storedHistory struct {
	*fake.History
	position int64
}

func (h storedHistory) Position(ctx context.Context, partition int) (int64, error) {
	return h.position, nil
}

func (h storedHistory) Append(context.Context, *query.Batch) error { return nil }

func (h storedHistory) Erase(context.Context, query.EraseQuery) error { return nil }

// TestSplitKeepsEmails: contacts' e-mails stay unique among accounts that were in
// one partition and are in several, and are free again when a contact goes.
func TestSplitKeepsEmails(t *testing.T) {
	t.Parallel()
	fs, now := vfs.NewMem(), time.UnixMilli(1_000_000_000_000)
	open := func(dir string, log eventlog.Log, history query.History) *Node {
		n, err := Open(t.Context(), Options{FS: fs, Dir: dir, Log: log, History: history, Now: func() time.Time { return now },
			Rand: &fake.Random{Rand: rand.New(rand.NewPCG(3, uint64(len(dir))))}, Feed: FeedOptions{Delay: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	openLog := func(dir string, partitions int) *file.Log {
		log, err := file.Open(dir, file.Options{FS: fs, Partitions: partitions})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { log.Close() })
		return log
	}
	const a, b, c = 7, 8, 9
	send := func(n *Node, account uint64, name string, args any) ([]byte, error) {
		return n.Command(t.Context(), account, name, args)
	}
	must := func(reply []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	log := openLog("log", 1)
	n := open("from", log, &fake.History{Rand: rand.New(rand.NewPCG(1, 1))})
	for i, account := range []uint64{a, b, c} {
		boot, name := testBootstrap(resolver.DefaultSettings()), resolver.CommandCompanyCreate
		boot.HashKey = fmt.Sprintf("%032x", account)
		if i == 0 {
			name = resolver.CommandBootstrap
		}
		must(send(n, account, name, boot))
	}
	var kept struct{ ID string }
	must(nil, json.Unmarshal(must(send(n, a, contacts.CommandCreate, contacts.Create{Email: "Ann@x.io"})), &kept))
	must(send(n, b, contacts.CommandCreate, contacts.Create{Email: "straße@x.io"}))
	_, end, err := log.Bounds(t.Context(), 0)
	must(nil, err)
	must(nil, n.Close(t.Context()))
	if _, err := resolver.Split(t.Context(), resolver.SplitOptions{FS: fs, From: "from", To: "to", Partitions: 3, Offset: end}); err != nil {
		t.Fatal(err)
	}
	n = open("to", movedLog{openLog("moved", 3), end}, storedHistory{&fake.History{Rand: rand.New(rand.NewPCG(1, 1))}, end})
	defer func() { must(nil, n.Close(context.Background())) }()
	refused := func(account uint64, email string) {
		t.Helper()
		var r *resolver.Refusal
		if _, err := send(n, account, contacts.CommandCreate, contacts.Create{Email: email}); !errors.As(err, &r) {
			t.Errorf("account %d makes a contact %s: %v", account, email, err)
		}
	}
	for _, account := range []uint64{a, b, c} {
		refused(account, "ANN@x.io")
		refused(account, "STRASSE@x.io")
	}
	must(send(n, c, contacts.CommandCreate, contacts.Create{Email: "other@x.io"}))
	refused(a, "other@x.io")
	must(send(n, a, resolver.CommandContactErase, resolver.ContactErase{ID: kept.ID}))
	// The directory gets it behind the answer.
	eventually.Succeeds(t, func() error {
		_, err := send(n, b, contacts.CommandCreate, contacts.Create{Email: "ann@x.io"})
		return err
	})
	refused(c, "Ann@X.io")
}
