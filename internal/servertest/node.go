package servertest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/resolver/node"
)

// StartNode opens a node on a log of so many partitions. Where o names none, the files are in
// memory, the node's state is in the directory state, and random bytes are random; the log is
// always in the directory log. stop closes both.
func StartNode(partitions int, o node.Options) (n *node.Node, stop func() error, err error) {
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	if o.Dir == "" {
		o.Dir = "state"
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Feed.Delay == 0 {
		o.Feed.Delay = time.Hour // history gets what a test waits for
	}
	log, err := file.Open("log", file.Options{FS: o.FS, Partitions: partitions})
	if err != nil {
		return nil, nil, err
	}
	o.Log = log
	if n, err = node.Open(context.Background(), o); err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	return n, func() error { return errors.Join(n.Close(context.Background()), log.Close()) }, nil
}

// Node is StartNode until the test ends.
func Node(t testing.TB, partitions int, o node.Options) *node.Node {
	t.Helper()
	n, stop, err := StartNode(partitions, o)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, stop)
	return n
}

// endWith calls stop when the test ends.
func endWith(t testing.TB, stop func() error) {
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
}
