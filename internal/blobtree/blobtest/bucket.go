// Package blobtest has object storage for tests: in memory, with a clock and
// with faults.
package blobtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/blobtree"
)

// Op is what a method of [Bucket] is about to do.
type Op struct {
	Kind string // put, get, stat, list or delete
	Key  string
}

// Bucket is storage in memory. The zero value is not ready, see [New].
type Bucket struct {
	// Before is asked before each operation, with no lock held; its error is
	// that of the operation, which then has no effect. It is set before use.
	Before func(Op) error

	mu      sync.Mutex
	now     time.Time
	objects map[string]object
}

type object struct {
	body   []byte
	stored time.Time
}

// New returns empty storage whose clock stands at an arbitrary time.
func New() *Bucket {
	return &Bucket{now: time.Unix(1_700_000_000, 0), objects: map[string]object{}}
}

func (b *Bucket) before(kind, key string) error {
	if b.Before == nil {
		return nil
	}
	return b.Before(Op{kind, key})
}

// Advance sets the clock forward.
func (b *Bucket) Advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// Clone is a copy of what is stored, as after a crash of all who use it.
func (b *Bucket) Clone() *Bucket {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &Bucket{now: b.now, objects: maps.Clone(b.objects)}
}

// Keys lists the keys that begin with prefix.
func (b *Bucket) Keys(prefix string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for k := range b.objects {
		if strings.HasPrefix(k, prefix) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// Damage changes a byte of an object.
func (b *Bucket) Damage(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.objects[key]
	o.body = bytes.Clone(o.body)
	o.body[len(o.body)/2] ^= 1
	b.objects[key] = o
}

// Put implements [blobtree.Bucket].
func (b *Bucket) Put(_ context.Context, key string, body io.Reader) error {
	if err := b.before("put", key); err != nil {
		return err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[key] = object{data, b.now}
	return nil
}

// Get implements [blobtree.Bucket].
func (b *Bucket) Get(_ context.Context, key string) (io.ReadCloser, error) {
	if err := b.before("get", key); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.objects[key]
	if !ok {
		return nil, fmt.Errorf("%w: %s", blobtree.ErrMissing, key)
	}
	return io.NopCloser(bytes.NewReader(o.body)), nil
}

// Stat implements [blobtree.Bucket].
func (b *Bucket) Stat(_ context.Context, key string) (blobtree.Object, error) {
	if err := b.before("stat", key); err != nil {
		return blobtree.Object{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.objects[key]
	if !ok {
		return blobtree.Object{}, fmt.Errorf("%w: %s", blobtree.ErrMissing, key)
	}
	return blobtree.Object{Key: key, Size: int64(len(o.body)), Stored: o.stored}, nil
}

// List implements [blobtree.Bucket].
func (b *Bucket) List(_ context.Context, dir string, fn func(blobtree.Object) error) error {
	if err := b.before("list", dir); err != nil {
		return err
	}
	b.mu.Lock()
	var list []blobtree.Object
	for k, o := range b.objects {
		if rest, ok := strings.CutPrefix(k, dir+"/"); ok && !strings.Contains(rest, "/") {
			list = append(list, blobtree.Object{Key: k, Size: int64(len(o.body)), Stored: o.stored})
		}
	}
	b.mu.Unlock()
	slices.SortFunc(list, func(x, y blobtree.Object) int { return strings.Compare(x.Key, y.Key) })
	for _, o := range list {
		if err := fn(o); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements [blobtree.Bucket].
func (b *Bucket) Delete(_ context.Context, key string) error {
	if err := b.before("delete", key); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.objects, key)
	return nil
}

// Close implements [blobtree.Bucket].
func (b *Bucket) Close() error { return nil }
