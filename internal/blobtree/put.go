package blobtree

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"
)

// ErrTooSlow means that a Put took so long that what it was to name may have
// been removed meanwhile. Nothing was put.
var ErrTooSlow = errors.New("storing took too long")

// Sent counts what a Put sent.
type Sent struct {
	// Bytes is the size of the tree, SentBytes of what was sent of it, the
	// manifest included.
	Bytes, SentBytes int64
	// Files is how many files the tree has, Objects how many objects were sent.
	Files, Objects int
}

// Source is a file to be stored.
type Source struct {
	// Path is the file's in the tree, From where its content is now.
	Path, From string
	// Size is how many of its bytes are stored, from the first on; -1 is all there are.
	Size int64
	// Check is given the size and the CRC-32 (IEEE) of a file that was read; its error ends
	// the Put. It is for files with all their bytes, and not called for one that was not
	// read because it has not changed. nil computes none.
	Check func(size int64, crc32 uint32) error
}

// Put stores a tree as the version of that name: the files below dir, or those of
// them that are listed. No file may change meanwhile. A version of the same
// name is replaced. When Put fails the version is not there, unless it was
// before, but for failures to tell how the last step ended.
func (s *Set) Put(ctx context.Context, name string, meta any, dir string, files []string) (sent Sent, err error) {
	if files == nil {
		if files, err = Files(s.opts.FS, dir); err != nil {
			return sent, err
		}
	}
	return s.PutSources(ctx, name, meta, Sources(s.opts.FS, dir, files), nil)
}

// Sources are whole files below dir, by their paths from there.
func Sources(fs vfs.FS, dir string, files []string) []Source {
	sources := make([]Source, len(files))
	for i, path := range files {
		sources[i] = Source{Path: path, From: fs.PathJoin(dir, path), Size: -1}
	}
	return sources
}

// PutSources is Put of files that may be anywhere. Their first bytes, as many as
// their size says, may be overwritten meanwhile: each piece is stored as it was at
// some time. last is called when they are stored and names files to store behind
// them; nil is none. Its error ends the Put. reused reports whether the file of a path was
// not read, because it has not changed since the Put before.
func (s *Set) PutSources(ctx context.Context, name string, meta any, sources []Source, last func(reused func(path string) bool) ([]Source, error)) (sent Sent, err error) {
	if s.opts.Keep > 0 {
		// Objects may be named for half of Keep, and the other half is for this.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.opts.Keep/4, ErrTooSlow)
		defer cancel()
	}
	now, err := s.seed(ctx)
	if err != nil {
		return sent, err
	}
	p := put{set: s, now: now, names: map[hash]string{}, absent: map[string]bool{}, sums: map[string]fileSums{}, reused: map[string]bool{}}
	m := Manifest{Version: manifestVersion, PieceBytes: s.opts.PieceBytes}
	if m.Meta, err = json.Marshal(meta); err != nil {
		return sent, err
	}
	if m.Files, err = p.files(ctx, sources); err != nil {
		return sent, err
	}
	if last != nil {
		if sources, err = last(func(path string) bool { return p.reused[path] }); err != nil {
			return sent, err
		}
		more, err := p.files(ctx, sources)
		if err != nil {
			return sent, err
		}
		m.Files = append(m.Files, more...)
		slices.SortFunc(m.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	}
	for i := range m.Files {
		if slices.ContainsFunc(m.Files[i].Pieces, func(name string) bool { return p.absent[name] }) {
			return sent, fmt.Errorf("%s: %w", m.Files[i].Path, errChanged)
		}
	}
	body, err := m.encode()
	if err != nil {
		return sent, err
	}
	if err := s.bucket.Put(ctx, s.manifestKey(name), bytes.NewReader(body)); err != nil {
		return sent, errors.Join(err, context.Cause(ctx))
	}
	s.stats.sent.Add(1)
	s.stats.sentBytes.Add(int64(len(body)))
	if err := s.inTime(ctx, name, now); err != nil {
		return sent, err
	}
	s.remember(&p)
	return Sent{Bytes: m.Bytes(), SentBytes: p.mu.bytes + int64(len(body)), Files: len(m.Files), Objects: p.mu.sent + 1}, nil
}

// inTime takes back a version that came too late, as from a process that stood
// still before its last step.
func (s *Set) inTime(ctx context.Context, name string, began time.Time) error {
	if s.opts.Keep == 0 {
		return nil
	}
	o, err := s.bucket.Stat(ctx, s.manifestKey(name))
	switch {
	case errors.Is(err, ErrMissing):
		return nil // another process found it old
	case err == nil && s.since(began, o.Stored):
		return nil
	case err == nil:
		err = ErrTooSlow
	}
	return errors.Join(err, s.Remove(context.WithoutCancel(ctx), name))
}

// seed learns once which pieces are stored, and returns the storage's time.
func (s *Set) seed(ctx context.Context) (now time.Time, err error) {
	if s.opts.Keep > 0 {
		if now, err = s.now(ctx); err != nil {
			return now, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, p := range s.mu.there {
		if !s.usable(p, now) {
			delete(s.mu.there, h)
		}
	}
	if s.mu.seeded {
		return now, nil
	}
	err = s.bucket.List(ctx, s.pieceDir(), func(o Object) error {
		p := piece{o.Key[len(s.pieceDir())+1:], o.Size, o.Stored}
		if h, ok := pieceHash(p.name); ok && s.usable(p, now) {
			s.mu.there[h] = p
		}
		return nil
	})
	s.mu.seeded = err == nil
	return now, err
}

// remember keeps what a Put learned for the next one.
func (s *Set) remember(p *put) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.sums = p.sums
}

// put is a Put under way.
type put struct {
	set *Set
	now time.Time

	mu struct {
		sync.Mutex
		sent  int
		bytes int64
	}
	// names are the pieces this Put names, sums the hashes of its files; mu
	// guards them.
	names map[hash]string
	sums  map[string]fileSums
	// reused are the paths of files whose hashes were known. mu guards it.
	reused map[string]bool
	// absent are names of pieces whose storing failed. Another file may have taken the
	// name before. mu guards it.
	absent map[string]bool
}

// fileSums are the hashes of a file's pieces.
type fileSums struct {
	id     fileID
	hashes []hash
	// checked is whether [Source.Check] let it pass.
	checked bool
}

// fileID reports whether a file is the one that was hashed before, as far as it
// can be told without reading it: a checkpoint's large files are links to those
// of the one before.
type fileID struct {
	size, modified int64
	inode          uint64
}

// files stores files, several at once, and describes them in order of their paths.
func (p *put) files(ctx context.Context, sources []Source) ([]File, error) {
	sources = slices.SortedFunc(slices.Values(sources), func(a, b Source) int { return cmp.Compare(a.Path, b.Path) })
	out := make([]File, len(sources))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(p.set.opts.Parallel)
	for i, source := range sources {
		g.Go(func() (err error) {
			out[i], err = p.file(gctx, source)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return out, nil
}

func (p *put) file(ctx context.Context, source Source) (File, error) {
	f, err := p.set.opts.FS.Open(source.From)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	out := File{Path: source.Path, Size: info.Size(), Pieces: []string{}}
	if source.Size >= 0 {
		if out.Size < source.Size {
			return out, fmt.Errorf("%s has %d bytes, %d were to be stored", source.From, out.Size, source.Size)
		}
		out.Size = source.Size
	}
	id := fileID{out.Size, info.ModTime().UnixNano(), inode(info)}
	p.set.mu.Lock()
	known, ok := p.set.mu.sums[source.Path]
	p.set.mu.Unlock()
	sums := fileSums{id: id, checked: source.Check != nil || known.checked && known.id == id}
	reused := ok && known.id == id && (source.Check == nil || known.checked)
	crc := crc32.NewIEEE()
	var check io.Writer
	if source.Check != nil {
		check = crc
	}
	for at := int64(0); at < out.Size; at += p.set.opts.PieceBytes {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		part := io.NewSectionReader(f, at, min(p.set.opts.PieceBytes, out.Size-at))
		var h hash
		hashed := reused
		if hashed {
			h = known.hashes[len(sums.hashes)]
		}
		var name string
		for again := 0; ; again++ {
			if !hashed {
				if h, err = p.sum(ctx, part, check); err != nil {
					return out, fmt.Errorf("%s: %w", source.From, err)
				}
			}
			if name, err = p.piece(ctx, h, part); !errors.Is(err, errChanged) || source.Size < 0 || again == maxChanged {
				break
			}
			hashed, reused = false, false
		}
		if err != nil {
			return out, fmt.Errorf("%s: %w", source.From, err)
		}
		sums.hashes = append(sums.hashes, h)
		out.Pieces = append(out.Pieces, name)
	}
	if source.Check != nil && !reused {
		if err := source.Check(out.Size, crc.Sum32()); err != nil {
			return out, err
		}
	}
	p.mu.Lock()
	p.sums[source.Path] = sums
	p.reused[source.Path] = reused
	p.mu.Unlock()
	return out, nil
}

// errChanged means that a piece has other content than when its hash was computed.
var errChanged = errors.New("the file has changed while it was stored")

// maxChanged bounds how often a piece that may change is stored again.
const maxChanged = 10

// piece returns the name of a piece that is stored, after storing it if need be.
func (p *put) piece(ctx context.Context, h hash, body *io.SectionReader) (string, error) {
	s := p.set
	s.mu.Lock()
	there, ok := s.mu.there[h]
	// One of another size is damaged, as by a copy of the storage that was cut off.
	damaged := ok && (there.size != body.Size() || s.mu.damaged[h])
	s.mu.Unlock()
	p.mu.Lock()
	if ok && !damaged {
		p.names[h] = there.name
	}
	// If another file of this tree is sending the same, its name will do: the
	// manifest is written once all is there.
	name, ok := p.names[h]
	if !ok {
		var salt [pieceSalt]byte
		if _, err := io.ReadFull(s.opts.Rand, salt[:]); err != nil {
			p.mu.Unlock()
			return "", fmt.Errorf("source of randomness: %w", err)
		}
		name = pieceName(h, salt)
		if damaged && s.opts.Keep == 0 {
			name = there.name // the versions that name it are whole again then
		}
		p.names[h] = name
	}
	p.mu.Unlock()
	if ok {
		return name, nil
	}
	if err := s.send(ctx, name, h, body); err != nil {
		p.mu.Lock()
		delete(p.names, h)
		p.absent[name] = true
		p.mu.Unlock()
		return "", err
	}
	p.mu.Lock()
	p.mu.sent++
	p.mu.bytes += body.Size()
	p.mu.Unlock()
	// It is younger than that: now is when the Put began.
	s.mu.Lock()
	s.mu.there[h] = piece{name, body.Size(), p.now}
	s.mu.Unlock()
	return name, nil
}

// send stores a piece under its name, unless its content is another.
func (s *Set) send(ctx context.Context, name string, h hash, body *io.SectionReader) error {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return err
	}
	check := sha256.New()
	if err := s.bucket.Put(ctx, s.pieceKey(name), &checkedReader{r: s.throttled(ctx, body), sum: func(b []byte) { check.Write(b) }, end: func() error {
		if hash(check.Sum(nil)) != h {
			return errChanged
		}
		return nil
	}}); err != nil {
		return err
	}
	s.stats.sent.Add(1)
	s.stats.sentBytes.Add(body.Size())
	s.mu.Lock()
	delete(s.mu.damaged, h)
	s.mu.Unlock()
	return nil
}

// sum is the hash of a piece. What it reads goes to crc as well, unless that is nil.
func (p *put) sum(ctx context.Context, part *io.SectionReader, crc io.Writer) (h hash, err error) {
	if _, err = part.Seek(0, io.SeekStart); err != nil {
		return h, err
	}
	d := sha256.New()
	to := io.Writer(d)
	if crc != nil {
		to = io.MultiWriter(d, crc)
	}
	if _, err = io.CopyBuffer(onlyWriter{to}, p.set.throttled(ctx, part), make([]byte, 256<<10)); err == nil {
		d.Sum(h[:0])
	}
	return h, err
}

type onlyWriter struct{ io.Writer }

// throttled reads as fast as [Options.Throttle] lets it.
func (s *Set) throttled(ctx context.Context, r io.Reader) io.Reader {
	if s.opts.Throttle == nil {
		return r
	}
	return &throttledReader{ctx, r, s.opts.Throttle}
}

type throttledReader struct {
	ctx      context.Context
	r        io.Reader
	throttle func(ctx context.Context, bytes int) error
}

func (r *throttledReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b[:min(len(b), 256<<10)])
	if e := r.throttle(r.ctx, n); e != nil {
		return n, e
	}
	return n, err
}

// checkedReader hands what it reads to sum, and asks end at the end.
type checkedReader struct {
	r   io.Reader
	sum func([]byte)
	end func() error
}

func (c *checkedReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.sum(b[:n])
	if errors.Is(err, io.EOF) {
		if e := c.end(); e != nil {
			return n, e
		}
	}
	return n, err
}

// Files lists the files below a directory, by their paths from there.
func Files(fs vfs.FS, dir string) ([]string, error) {
	var out []string
	var walk func(rel string) error
	walk = func(rel string) error {
		names, err := fs.List(fs.PathJoin(dir, rel))
		if err != nil {
			return err
		}
		for _, n := range names {
			path := n
			if rel != "" {
				path = rel + "/" + n
			}
			info, err := fs.Stat(fs.PathJoin(dir, path))
			if err != nil {
				return err
			}
			if info.IsDir() {
				err = walk(path)
			} else {
				out = append(out, path)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	err := walk("")
	slices.Sort(out)
	return out, err
}
