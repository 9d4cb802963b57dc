package resolver

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/feed"
)

// Served is a machine that a node serves, as simulations drive it that look into the
// machine, too. The node's package is above this one, so [Serve] is set from outside.
type Served interface {
	Accounts() []uint64
	Checkpoint() error
	Close(ctx context.Context) error
	Command(ctx context.Context, account uint64, name string, args any) ([]byte, error)
	Read(ctx context.Context, account uint64, fn func(*View) error) error
	Submit(ctx context.Context, account uint64, rec []byte, out *Outcome) error
	StateHash(partition int) (next int64, sum string, err error)
	WaitHistory(ctx context.Context, cut query.Cut) error
	// Rebuilding reports whether rows of history are being rebuilt.
	Rebuilding() bool
}

// ServeOptions are the node's of the same names.
type ServeOptions struct {
	FS                          vfs.FS
	Dir                         string
	Log                         eventlog.Log
	History                     query.History
	Now                         func() time.Time
	Rand                        io.Reader
	CheckpointInterval          time.Duration
	GenerationBytes, CacheBytes int64
	Feed                        feed.Options
}

// Serve opens a node.
var Serve func(ctx context.Context, o ServeOptions) (Served, error)

// servedFixture has the directories and the log of a served machine from start to
// start.
type servedFixture struct {
	t       *testing.T
	log     *file.Log
	options ServeOptions
	Served
}

// newServedFixture starts a node with an account as b says.
func newServedFixture(t *testing.T, b Bootstrap) *servedFixture {
	t.Helper()
	fs, now := vfs.NewMem(), time.UnixMilli(1_000_000_000_000)
	f := &servedFixture{t: t, options: ServeOptions{FS: fs, Dir: "state", History: &modelHistory{Rand: rand.New(rand.NewPCG(1, 1))},
		Now: func() time.Time { return now }, Rand: &seededReader{Rand: rand.New(rand.NewPCG(3, 1))}, Feed: feed.Options{Delay: time.Millisecond}}}
	f.start()
	if _, err := f.Command(context.Background(), testAccount, CommandBootstrap, b); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *servedFixture) start() {
	f.t.Helper()
	var err error
	if f.log, err = file.Open("log", file.Options{FS: f.options.FS, Partitions: 1}); err != nil {
		f.t.Fatal(err)
	}
	f.options.Log = f.log
	if f.Served, err = Serve(context.Background(), f.options); err != nil {
		f.t.Fatal(err)
	}
}

func (f *servedFixture) stop() {
	f.t.Helper()
	if err := errors.Join(f.Close(context.Background()), f.log.Close()); err != nil {
		f.t.Fatal(err)
	}
}

// restart stops the node and starts it again.
func (f *servedFixture) restart() {
	f.t.Helper()
	f.stop()
	f.start()
}
