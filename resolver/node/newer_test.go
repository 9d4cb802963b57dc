package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/fake"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// asBuild rewrites a checkpoint as one of another version of the rules.
func asBuild(t *testing.T, fs vfs.FS, partition, version int) {
	t.Helper()
	offset, err := resolver.NewestCheckpoint(fs, "state", partition)
	if err != nil || offset < 0 {
		t.Fatal(offset, err)
	}
	c := checkpoint.Dir{FS: fs, Root: newPartition(&Node{opts: Options{FS: fs, Dir: "state", Logger: discard()}}, partition).ckpt.Root}
	path := c.Path(checkpoint.DirCheckpoints, checkpoint.Name(offset), checkpoint.FileManifest)
	b, err := statefiles.ReadChecked(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	var f checkpoint.Manifest
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	f.ApplyVersion = version
	if err := statefiles.Write(fs, path, statefiles.WithChecksum(must.JSON(f))); err != nil {
		t.Fatal(err)
	}
}

// epochOf appends the epoch record of a node whose build has a version.
func (c *testCluster) epochOf(partition, version int) {
	c.t.Helper()
	env := eventlog.Envelope{Kind: eventlog.KindCommand, StampMs: c.clock.Load()}
	if _, err := c.ids.Read(env.ID[:]); err != nil {
		c.t.Fatal(err)
	}
	rec := eventlog.AppendCommand(env.Append(nil), resolver.CommandPartitionEpoch, must.JSON(resolver.EpochBegin{Node: "other", Address: "other:1", ApplyVersion: version}))
	if _, err := c.log.Append(context.Background(), partition, rec); err != nil {
		c.t.Fatal(err)
	}
}

func (c *testCluster) openAs(i int, id string) *Node {
	c.t.Helper()
	return c.open(i, func(o *Options) { o.NodeID, o.Advertise = id, id+":1" })
}

// stopped waits until the node has failed for a newer version's sake, with what is
// to be done.
func (c *testCluster) stopped(n *Node, what string) {
	c.t.Helper()
	select {
	case <-n.Failed():
	case <-time.After(time.Minute):
		c.t.Fatalf("%s: the node continues", what)
	}
	err := n.Err()
	if !errors.Is(err, resolver.ErrNewer) || !strings.Contains(err.Error(), "Install that version on this node") || strings.Contains(err.Error(), "pass over") {
		c.t.Fatalf("%s: %v", what, err)
	}
}

// TestR1UpgradeAndDowngrade: a build takes what older builds have written, and says
// in the log that it was there; from then on an older one, here the same beside what
// a newer one would write, does nothing: not while it runs, not when it starts, not
// from a checkpoint, and not with what the log has behind that (R1).
func TestR1UpgradeAndDowngrade(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 3)
	defer c.close()
	n := c.openAs(0, "a")
	mustTake(t, n, 0, 1, 2)
	c.found(n)
	// Upgrade: checkpoints and epochs of a build before.
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for p := range clusterPartitions {
		asBuild(t, c.fs[0], p, resolver.ApplyVersion-1)
		c.epochOf(p, resolver.ApplyVersion-1)
	}
	n = c.openAs(0, "a")
	mustTake(t, n, 0, 1, 2)
	for p := range clusterPartitions {
		if e, ok := n.Epoch(p); !ok || e.ApplyVersion != resolver.ApplyVersion || e.Node != "a" {
			t.Fatalf("after the upgrade partition %d has the epoch %+v", p, e)
		}
		if _, err := c.event(context.Background(), n, clusterAccount(p), "after"); err != nil {
			t.Fatal(err)
		}
	}

	// A newer node takes a partition while this one runs.
	c.epochOf(1, resolver.ApplyVersion+1)
	c.stopped(n, "a record of a newer build")
	_ = n.Close(context.Background())
	// When it starts again, and on another node without any state.
	for i, id := range []string{"a", "b"} {
		n := c.openAs(i, id)
		mustTake(t, n, 0)
		if err := n.Take(context.Background(), 1); err == nil {
			t.Fatalf("node %s takes a partition that a newer build has had", id)
		}
		c.stopped(n, "a start behind a newer build")
		_ = n.Close(context.Background())
	}
	// From a checkpoint of the newer build.
	asBuild(t, c.fs[0], 2, resolver.ApplyVersion+1)
	n = c.openAs(0, "a")
	if err := n.Take(context.Background(), 2); !errors.Is(err, resolver.ErrNewer) {
		t.Fatal(err)
	}
	c.stopped(n, "a checkpoint of a newer build")
	_ = n.Close(context.Background())
	c.nodes = []*Node{nil, nil, nil}
}

// TestStateTooOldIsRefused: a checkpoint of before 0.1.0 is neither read nor set aside, and
// no older one is taken in its place; what is wrong is not called damage.
func TestStateTooOldIsRefused(t *testing.T) {
	t.Parallel()
	d := newDamageFixture(t, 1)
	fs := d.copy(t)
	asBuild(t, fs, 0, state.OldestRules-1)
	before := fmt.Sprint(fake.FilesBelow(t, fs, "state"))
	n, _, err := d.open(fs, d.history.Clone(), nil)
	if !errors.Is(err, statefiles.ErrOlder) || errors.Is(err, statefiles.ErrDamaged) || !strings.Contains(err.Error(), "Start it once with version 0.1.0") || n != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprint(fake.FilesBelow(t, fs, "state")); after != before {
		t.Errorf("the refused start changed files: %s became %s", before, after)
	}
	asBuild(t, fs, 0, state.OldestRules)
	if err := d.check(t, fs, d.history.Clone()); err != nil {
		t.Error(err)
	}
}

// TestR1NodeSaysItsRulesOnce: a node that begins no epochs says in the log that a build with
// newer rules runs, once, where older ones wrote the log. A log of this build needs
// nothing said (R1).
func TestR1NodeSaysItsRulesOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		made int // the version that the account was made under
		said int64
	}{"older": {resolver.ApplyVersion - 1, 1}, "present": {resolver.ApplyVersion, 0}} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			made := testBootstrap(resolver.DefaultSettings())
			made.ApplyVersion = c.made
			n, err := p.try("a", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := n.Command(t.Context(), testAccount, resolver.CommandBootstrap, made); err != nil {
				t.Fatal(err)
			}
			next := func() int64 {
				q := n.partitions[0].Load()
				q.mu.RLock()
				defer q.mu.RUnlock()
				return q.mu.m.Next()
			}
			before := next()
			for start := range 3 {
				if err := n.Checkpoint(); err != nil {
					t.Fatal(err)
				}
				p.stop(n)
				n = p.open("a")
				if got := next() - before; got != c.said {
					t.Fatalf("start %d: %d records more, want %d", start, got, c.said)
				}
			}
			m, _ := replay(t, p.log, next())
			if got, want := fmt.Sprint(m.Next(), hashOf(t, m)), p.state(n); got != want || m.NeedsRules() {
				t.Errorf("replayed %s, the node has %s", got, want)
			}
			p.stop(n)
		})
	}
}
