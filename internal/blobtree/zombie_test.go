package blobtree_test

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/blobtree/blobtest"
	"github.com/musterhq/muster/internal/testlevel"
)

// seededReader is a source of bytes for tests.
type seededReader struct{ *mathrand.Rand }

func (r seededReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return len(p), nil
}

// TestB1ZombiesNeverNameWhatIsMissing: processes that each think they are alone
// put versions, thin them out and collect garbage, one operation of storage at a
// time in any order, some standing still for hours, some crashing. After each
// operation every version is whole.
func TestB1ZombiesNeverNameWhatIsMissing(t *testing.T) {
	rounds := 80
	if testlevel.Long() {
		rounds = 5000
	}
	first := uint64(1)
	if s := os.Getenv("MUSTER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, rounds = n, 1
	}
	var total zombieCounts
	for seed := first; seed < first+uint64(rounds); seed++ {
		zombies(t, seed, &total)
	}
	t.Logf("%+v", total)
	if rounds > 1 && (total.shared == 0 || total.removed == 0 || total.crashes == 0) {
		t.Errorf("nothing was tried: %+v", total)
	}
}

type zombieCounts struct{ versions, shared, removed, crashes int }

var errCrash = errors.New("crash")

// zombie is a process: it does one operation each time it is let.
type zombie struct {
	go_, yield chan struct{}
	dead       bool // told to end at its next operation
	done       bool
}

func zombies(t *testing.T, seed uint64, total *zombieCounts) {
	r := mathrand.New(mathrand.NewPCG(seed, 0))
	fs, b := vfs.NewMem(), blobtest.New()
	trees := make([]string, 8)
	for i := range trees {
		trees[i] = fmt.Sprintf("t%d", i)
		f := randomTree(r)
		f.write(t, fs, trees[i])
	}
	var current *zombie
	b.Before = func(blobtest.Op) error {
		z := current
		z.yield <- struct{}{}
		<-z.go_
		if z.dead {
			return errCrash
		}
		return nil
	}
	next := 0
	start := func() *zombie {
		z := &zombie{go_: make(chan struct{}), yield: make(chan struct{})}
		script := mathrand.New(mathrand.NewPCG(seed, r.Uint64()))
		go func() {
			defer close(z.yield)
			<-z.go_
			s := newSet(t, b, fs, func(o *blobtree.Options) { o.Parallel, o.Rand = 1, seededReader{script} })
			for i := 0; i < 6 && !z.dead; i++ {
				next++
				name := fmt.Sprintf("%06d", next)
				sent, err := s.Put(context.Background(), name, nil, trees[script.IntN(len(trees))], nil)
				if err != nil {
					if !errors.Is(err, errCrash) && !errors.Is(err, blobtree.ErrTooSlow) {
						t.Errorf("seed %d: %v", seed, err)
					}
					continue
				}
				total.versions++
				if sent.Objects < sent.Files {
					total.shared++
				}
				names, err := s.Names(context.Background())
				for len(names) > 2 && err == nil {
					err = s.Remove(context.Background(), names[0])
					names = names[1:]
				}
				if err == nil && len(names) > 0 {
					_, err = s.Collect(context.Background(), names[len(names)-1])
				}
				if err != nil && !errors.Is(err, errCrash) && !strings.Contains(err.Error(), "nothing is removed") {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
			total.removed += int(s.Stats().Removed)
		}()
		return z
	}
	all := []*zombie{start(), start(), start()}
	// While a process is in the middle of something the clock advances by less than
	// half of keep in all; a Put that takes longer is another test.
	budget := keep/2 - time.Second
	for {
		var live []*zombie
		for _, z := range all {
			if !z.done {
				live = append(live, z)
			}
		}
		if len(live) == 0 {
			return
		}
		switch {
		case r.IntN(4) == 0 && budget > 0:
			d := min(budget, time.Duration(r.Int64N(int64(keep/6))))
			b.Advance(d)
			budget -= d
		case budget <= 0:
			// Each goes to the end of what it is doing, then time is free again.
			for _, z := range live {
				z.dead = true
				for !z.done {
					step(&current, z)
				}
				total.crashes++
				if len(all) < 12 {
					all = append(all, start())
				}
			}
			budget = keep/2 - time.Second
		case r.IntN(100) == 0:
			live[0].dead = true
			total.crashes++
		}
		if z := live[r.IntN(len(live))]; !z.done {
			step(&current, z)
		}
		whole(t, seed, b, fs)
		if t.Failed() {
			for _, z := range all {
				z.dead = true
				for !z.done {
					step(&current, z)
				}
			}
			t.Fatalf("seed %d", seed)
		}
	}
}

// step lets a zombie do its next operation.
func step(current **zombie, z *zombie) {
	*current = z
	z.go_ <- struct{}{}
	if _, ok := <-z.yield; !ok {
		z.done = true
	}
}

// whole checks that each manifest names only what is there.
func whole(t *testing.T, seed uint64, b *blobtest.Bucket, fs vfs.FS) {
	c := b.Clone()
	s := newSet(t, c, fs, nil)
	there := map[string]bool{}
	for _, key := range c.Keys("set/files/") {
		there[strings.TrimPrefix(key, "set/files/")] = true
	}
	names, err := s.Names(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		m, err := s.Manifest(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Files {
			for _, p := range f.Pieces {
				if !there[p] {
					t.Errorf("B1: seed %d: %s names %s of %s, which is missing", seed, name, p, f.Path)
				}
			}
		}
	}
}
