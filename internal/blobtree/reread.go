package blobtree

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
)

const (
	// rereadShares is how many shares the objects of a version have: one is read at a time.
	rereadShares = 200
	// rereadBytes is about the most bytes of a share; larger versions have more shares.
	rereadBytes = 1 << 30
)

// Reread is what was read again.
type Reread struct {
	// Objects and Bytes count what was whole.
	Objects int
	Bytes   int64
	Damaged []Damage
}

// Damage is an object that is not what was put, or cannot be read.
type Damage struct {
	Key string
	// File is a file of the version that has the content; empty for a manifest.
	File string
	// Err is what is wrong.
	Err error
	// Unmended is why the object was not stored again. It is nil where it was: the versions
	// that name it are whole again.
	Unmended error
}

// Reread reads a share of the objects that a version names, and compares their content with
// their names. Turns that follow each other read different ones, and some two hundred read
// all; versions of hundreds of gigabytes take more. What is damaged is stored again from
// sources, which are those of the version; where that fails, the next Put of the same content
// does it. The error is why something could not be read. It is for a set that keeps all for
// ever.
func (s *Set) Reread(ctx context.Context, name string, turn int, sources []Source) (out Reread, err error) {
	m, err := s.Manifest(ctx, name)
	if errors.Is(err, ErrDamaged) {
		out.Damaged = append(out.Damaged, Damage{Key: s.manifestKey(name), Err: err, Unmended: errors.New("it is the list of the backup's files, which nothing else has")})
		return out, nil
	}
	if err != nil {
		return out, err
	}
	from := map[string]string{}
	for _, source := range sources {
		from[source.Path] = source.From
	}
	buf := make([]byte, 128<<10)
	for _, p := range share(m, turn) {
		err := s.fetchPiece(ctx, p.name, p.size, throttledWriter{ctx, s.opts.Throttle}, buf)
		// What a disk cannot read is not there any more, and is not for want of a connection.
		damaged := errors.Is(err, ErrDamaged) || errors.Is(err, syscall.EIO)
		switch {
		case err == nil:
			out.Objects++
			out.Bytes += p.size
		case !damaged:
			return out, err
		default:
			s.mu.Lock()
			s.mu.damaged[p.hash] = true
			s.mu.Unlock()
			out.Damaged = append(out.Damaged, Damage{Key: s.pieceKey(p.name), File: p.file, Err: err, Unmended: s.mend(ctx, p, from[p.file])})
		}
	}
	return out, nil
}

// mend stores a piece again under its name, out of the file that had it.
func (s *Set) mend(ctx context.Context, p named, path string) error {
	f, err := s.opts.FS.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.send(ctx, p.name, p.hash, io.NewSectionReader(f, p.at, p.size)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// named is a piece that a version names, and where a file of it has the content.
type named struct {
	name     string
	hash     hash
	file     string
	at, size int64
}

// share chooses the pieces of a version that are read at a turn: by their hashes, so that a
// piece has the same turn in all versions, however many others come and go.
func share(m *Manifest, turn int) []named {
	var all []named
	var total int64
	seen := map[string]bool{}
	for i := range m.Files {
		f := &m.Files[i]
		for j, name := range f.Pieces {
			if seen[name] {
				continue
			}
			seen[name] = true
			h, _ := pieceHash(name)
			at := int64(j) * m.PieceBytes
			p := named{name, h, f.Path, at, min(m.PieceBytes, f.Size-at)}
			all, total = append(all, p), total+p.size
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	// Doubled, so that a version that grows a little seldom changes the turns.
	shares := uint64(rereadShares)
	for uint64(total)/shares > rereadBytes {
		shares *= 2
	}
	begin := func(turn uint64) int {
		i, _ := slices.BinarySearchFunc(all, turn, func(p named, turn uint64) int {
			return cmp.Compare(uint64(binary.BigEndian.Uint32(p.hash[:]))*shares>>32, turn)
		})
		return i
	}
	at := uint64(turn) % shares
	from, to := begin(at), begin(at+1)
	if from == len(all) {
		from, to = 0, 1
	}
	return all[from:max(to, from+1)]
}

// throttledWriter takes bytes as fast as the throttle lets it; nil is as fast as they come.
type throttledWriter struct {
	ctx      context.Context
	throttle func(ctx context.Context, bytes int) error
}

func (w throttledWriter) Write(b []byte) (int, error) {
	if w.throttle == nil {
		return len(b), nil
	}
	return len(b), w.throttle(w.ctx, len(b))
}
