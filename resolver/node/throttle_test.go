package node

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// TestRequestWhileOneIsWritten: a checkpoint asked for while another is being written is
// written afterwards. When it was forgotten, the goroutine that applies records could wait for it
// until the next interval.
func TestRequestWhileOneIsWritten(t *testing.T) {
	t.Parallel()
	d := newDamageFixture(t, 1)
	var (
		begun   = make(chan struct{})
		release = make(chan struct{})
		once    sync.Once
	)
	gated := make(chan struct{}) // closed once the gate stands
	fs := errorfs.Wrap(d.copy(t), errorfs.InjectorFunc(func(op errorfs.Op) error {
		select {
		case <-gated:
			if strings.Contains(op.Path, checkpoint.DirCheckpoints) {
				once.Do(func() { close(begun) })
				<-release
			}
		default:
		}
		return nil
	}))
	n, log := d.mustOpen(t, fs, d.history.Clone())
	p := n.partitions[0].Load()
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 9))
	d.submit(t, rng, n, 100)
	close(gated)
	p.checkpoint.request()
	<-begun
	d.submit(t, rng, n, 101)
	p.checkpoint.request()
	close(release)
	end := p.position.applied.Load()
	eventually.Succeeds(t, func() error {
		if last := p.checkpoint.last.Load(); last < end {
			return fmt.Errorf("the newest checkpoint is of record %d, asked for at %d", last, end)
		}
		return nil
	})
	d.stop(t, n, log)
}

// TestThrottledUnlessARequestWaits: what writes a checkpoint pauses, but not while a request
// waits for it or the next generation is as large as may be.
func TestThrottledUnlessARequestWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n, err := Open(t.Context(), f.options(func(o *Options) { o.GenerationBytes = 100 << 10 }))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close(t, n)
	if _, err := n.Command(t.Context(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	p := n.partitions[0].Load()
	if d := p.throttled(time.Minute); d != time.Minute {
		t.Errorf("no request waits, and it pauses for %v", d)
	}
	p.checkpoint.urgent.Add(1)
	if d := p.throttled(time.Minute); d != 0 {
		t.Errorf("a request waits, and it pauses for %v", d)
	}
	p.checkpoint.urgent.Add(-1)
	// No checkpoint is written meanwhile, which would make it small again.
	p.checkpoint.Lock()
	for i := 0; ; i++ {
		if size, _ := p.generationBytes(); size > n.opts.GenerationBytes {
			break
		}
		submitEvents(t, n, fake.Event("external_id", fmt.Sprint("p", i)))
	}
	if d := p.throttled(time.Minute); d != 0 {
		t.Errorf("the next generation is as large as may be, and it pauses for %v", d)
	}
	p.checkpoint.Unlock()
}
