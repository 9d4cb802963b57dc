package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure a [Store].
type Options struct {
	// Bucket is where checkpoints are. The store closes it.
	Bucket blobtree.Bucket
	// Place names the bucket for people, such as by its URL.
	Place string
	// Log names the log, whose checkpoints alone may be there.
	Log string
	// FS has the checkpoints of this node.
	FS vfs.FS
	// Rand names files; Now paces the collecting of garbage.
	Rand   io.Reader
	Now    func() time.Time
	Logger *slog.Logger // nil is silent
}

const (
	// keptVersions is how many checkpoints are kept: the newest, and one to fall
	// back to.
	keptVersions = 2
	// keepFiles is how long a file is kept at least. Half of it is how long it may
	// be taken for granted, see package blobtree.
	keepFiles = 24 * time.Hour
	// collectEvery is the time between two looks for garbage, collectTime how long
	// one may take: the next one continues.
	collectEvery = time.Hour
	collectTime  = time.Minute
	// maxListings bounds how often Newest begins again because what it reads is
	// being replaced.
	maxListings = 5
)

// Store is shared storage for checkpoints. Its methods may be called at once for
// different partitions.
type Store struct {
	opts Options
	mu   struct {
		sync.Mutex
		sets      map[int]*blobtree.Set
		collected map[int]time.Time
	}
}

var _ node.SharedCheckpoints = (*Store)(nil)

// New returns the store of a log. Storage is not asked for anything yet.
func New(o Options) (*Store, error) {
	if o.Bucket == nil || o.Log == "" || o.FS == nil || o.Rand == nil || o.Now == nil {
		return nil, errors.New("checkpoint: Bucket, Log, FS, Rand and Now must be set")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{opts: o}
	s.mu.sets, s.mu.collected = map[int]*blobtree.Set{}, map[int]time.Time{}
	return s, nil
}

// Close closes the bucket.
func (s *Store) Close() error { return s.opts.Bucket.Close() }

// Place names the storage for people.
func (s *Store) Place() string { return s.opts.Place }

// Stats are numbers of all partitions since the start.
func (s *Store) Stats() (total blobtree.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.mu.sets {
		t := set.Stats()
		total.Sent += t.Sent
		total.SentBytes += t.SentBytes
		total.FetchedBytes += t.FetchedBytes
		total.Removed += t.Removed
	}
	return total
}

// about is what a manifest says of its checkpoint.
type about struct {
	Log       string `json:"log"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
	Epoch     uint64 `json:"epoch"`
}

// version is the name of a checkpoint; names sort like offsets.
type version struct {
	offset int64
	epoch  uint64
}

func (v version) String() string { return fmt.Sprintf("%020d-%020d", v.offset, v.epoch) }

func parseVersion(name string) (v version, ok bool) {
	offset, epoch, ok := strings.Cut(name, "-")
	var errOffset, errEpoch error
	v.offset, errOffset = strconv.ParseInt(offset, 10, 64)
	v.epoch, errEpoch = strconv.ParseUint(epoch, 10, 64)
	return v, ok && errOffset == nil && errEpoch == nil && name == v.String()
}

func (s *Store) set(partition int) (*blobtree.Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.mu.sets[partition]; set != nil {
		return set, nil
	}
	set, err := blobtree.NewSet(s.opts.Bucket, fmt.Sprintf("p%d", partition),
		blobtree.Options{FS: s.opts.FS, Rand: s.opts.Rand, Keep: keepFiles})
	if err == nil {
		s.mu.sets[partition] = set
	}
	return set, err
}

// versions lists a partition's checkpoints, oldest first.
func versions(ctx context.Context, set *blobtree.Set) ([]version, error) {
	names, err := set.Names(ctx)
	var out []version
	for _, n := range names {
		if v, ok := parseVersion(n); ok {
			out = append(out, v)
		}
	}
	return out, err
}

// manifest reads a checkpoint's manifest, and refuses that of another log.
func (s *Store) manifest(ctx context.Context, set *blobtree.Set, partition int, v version) (*blobtree.Manifest, error) {
	m, err := set.Manifest(ctx, v.String())
	if err != nil {
		return nil, err
	}
	var a about
	if err := json.Unmarshal(m.Meta, &a); err != nil {
		return nil, fmt.Errorf("checkpoint %v of partition %d: %w: %w", v, partition, blobtree.ErrDamaged, err)
	}
	if a.Log != s.opts.Log {
		return nil, fmt.Errorf("%w: in %s there are those of %s, this is %s. Name another place with --checkpoints", node.ErrForeignCheckpoints, s.opts.Place, a.Log, s.opts.Log)
	}
	return m, nil
}
