package blobtree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configure a [Set].
type Options struct {
	// FS is where trees are read from and written to.
	FS vfs.FS
	// Rand is the source of the names of objects.
	Rand io.Reader
	// Keep is how long an object is kept at least: see the package's
	// documentation. Zero keeps all for ever.
	Keep time.Duration
	// PieceBytes is the size of the pieces that files are cut into (default
	// 64 MiB).
	PieceBytes int64
	// Throttle is called for the bytes of files that were read and returns when the next
	// ones may be; nil reads as fast as that goes.
	Throttle func(ctx context.Context, bytes int) error
	// Parallel is how many objects are sent or read at once (default 4).
	Parallel int
}

// Set is a place in storage for versions of one tree. Its methods may be called
// at once, but for Put.
type Set struct {
	bucket Bucket
	prefix string
	opts   Options
	stats  struct {
		sent, sentBytes, fetchedBytes, removed atomic.Int64
	}

	mu struct {
		sync.Mutex
		seeded bool
		// there are pieces known to be stored.
		there map[hash]piece
		// damaged are those that were found damaged and were not stored again.
		damaged map[hash]bool
		// sums are the hashes of the files of the last Put.
		sums map[string]fileSums
	}
}

// piece is a stored piece. It is as old as at least stored tells.
type piece struct {
	name   string
	size   int64
	stored time.Time
}

// NewSet returns the set under a prefix, without a slash at its end.
func NewSet(b Bucket, prefix string, o Options) (*Set, error) {
	if b == nil || prefix == "" || o.FS == nil || o.Rand == nil {
		return nil, errors.New("blobtree: bucket, prefix, FS and Rand must be set")
	}
	if o.PieceBytes == 0 {
		o.PieceBytes = 64 << 20
	}
	if o.Parallel == 0 {
		o.Parallel = 4
	}
	if o.PieceBytes < 0 || o.PieceBytes > maxPieceBytes || o.Parallel < 0 || o.Keep < 0 {
		return nil, errors.New("blobtree: limits must not be negative, nor pieces larger than 1 GiB")
	}
	s := &Set{bucket: b, prefix: prefix, opts: o}
	s.mu.there, s.mu.damaged, s.mu.sums = map[hash]piece{}, map[hash]bool{}, map[string]fileSums{}
	return s, nil
}

// Stats are numbers of a set since it was opened.
type Stats struct {
	// Sent counts objects that were sent, SentBytes their bytes.
	Sent, SentBytes int64
	// FetchedBytes were read back.
	FetchedBytes int64
	// Removed counts objects that were removed as garbage.
	Removed int64
}

// Stats returns the set's numbers.
func (s *Set) Stats() Stats {
	return Stats{s.stats.sent.Load(), s.stats.sentBytes.Load(), s.stats.fetchedBytes.Load(), s.stats.removed.Load()}
}

const manifestSuffix = ".json"

func (s *Set) manifestDir() string                { return s.prefix + "/manifests" }
func (s *Set) manifestKey(name string) string     { return s.manifestDir() + "/" + name + manifestSuffix }
func (s *Set) pieceDir() string                   { return s.prefix + "/files" }
func (s *Set) pieceKey(name string) string        { return s.pieceDir() + "/" + name }
func (s *Set) since(at, now time.Time) bool       { return now.Sub(at) < s.opts.Keep/2 }
func (s *Set) usable(p piece, now time.Time) bool { return s.opts.Keep == 0 || s.since(p.stored, now) }

// Forget makes the next Put ask the storage what is there. Hashes of files are kept.
func (s *Set) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.seeded = false
	clear(s.mu.there)
}

// Names lists the versions, in order of their names.
func (s *Set) Names(ctx context.Context) ([]string, error) {
	var names []string
	err := s.bucket.List(ctx, s.manifestDir(), func(o Object) error {
		if name, ok := strings.CutSuffix(o.Key[len(s.manifestDir())+1:], manifestSuffix); ok {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// Manifest reads a version's manifest. Errors wrap [ErrMissing], [ErrDamaged] or
// [ErrNewer], or say why storage did not answer.
func (s *Set) Manifest(ctx context.Context, name string) (*Manifest, error) {
	b, err := s.read(ctx, s.manifestKey(name), maxManifestBytes)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.manifestKey(name), err)
	}
	return m, nil
}

// Remove makes a version one that never was. Its objects are left to Collect.
func (s *Set) Remove(ctx context.Context, name string) error {
	return s.bucket.Delete(ctx, s.manifestKey(name))
}

func (s *Set) read(ctx context.Context, key string, limit int64) (b []byte, err error) {
	r, err := s.bucket.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if b, err = io.ReadAll(io.LimitReader(r, limit+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: %w: it is larger than %d bytes", key, ErrDamaged, limit)
	}
	return b, nil
}

// now is the storage's time.
func (s *Set) now(ctx context.Context) (time.Time, error) {
	key := s.prefix + "/clock"
	if err := s.bucket.Put(ctx, key, bytes.NewReader(nil)); err != nil {
		return time.Time{}, err
	}
	o, err := s.bucket.Stat(ctx, key)
	return o.Stored, err
}
