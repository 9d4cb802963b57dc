package blobtree

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"
)

// Fetch makes dir the tree of a manifest. It is there whole and durable, but for
// the entry of dir itself, when Fetch returns; after an error it may hold a
// part. Errors wrap [ErrDamaged], or say why storage did not answer.
func (s *Set) Fetch(ctx context.Context, m *Manifest, dir string) error {
	fs := s.opts.FS
	dirs := map[string]bool{"": true}
	for i := range m.Files {
		for d := path.Dir(m.Files[i].Path); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	var order []string
	for d := range dirs {
		order = append(order, d)
	}
	slices.Sort(order)
	for _, d := range order {
		if err := fs.MkdirAll(fs.PathJoin(dir, d), 0o700); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.opts.Parallel)
	for i := range m.Files {
		g.Go(func() error { return s.fetchFile(ctx, m, &m.Files[i], dir) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, d := range slices.Backward(order) {
		if err := syncDir(fs, fs.PathJoin(dir, d)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Set) fetchFile(ctx context.Context, m *Manifest, f *File, dir string) (err error) {
	out, err := s.opts.FS.Create(s.opts.FS.PathJoin(dir, f.Path), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf := make([]byte, 128<<10)
	for i, name := range f.Pieces {
		size := min(m.PieceBytes, f.Size-int64(i)*m.PieceBytes)
		if err := s.fetchPiece(ctx, name, size, out, buf); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return out.Sync()
}

func (s *Set) fetchPiece(ctx context.Context, name string, size int64, out io.Writer, buf []byte) (err error) {
	key := s.pieceKey(name)
	want, ok := pieceHash(name)
	if !ok {
		return fmt.Errorf("%w: no name of a piece: %q", ErrDamaged, name)
	}
	r, err := s.bucket.Get(ctx, key)
	if errors.Is(err, ErrMissing) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	check := sha256.New()
	// The sum first: a file may change the bytes it is handed.
	n, err := io.CopyBuffer(onlyWriter{io.MultiWriter(check, out)}, io.LimitReader(r, size+1), buf)
	s.stats.fetchedBytes.Add(n)
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	if n != size || hash(check.Sum(nil)) != want {
		return fmt.Errorf("%s: %w: its content is not what its name says", key, ErrDamaged)
	}
	return nil
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
