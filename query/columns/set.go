package columns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/musterhq/muster/query"
)

// Set is the columns of a history. It is safe for concurrent use.
type Set struct {
	dir    string
	log    string
	logger *slog.Logger
	// extending is held by what changes memory or files, before mu.
	extending sync.Mutex
	mu        sync.Mutex // guards what follows
	files     map[int][]*file
	memory    map[int]*memory
	// sealed are events that were in memory and are being written to a file; they end where
	// the partition's memory begins.
	sealed map[int]*memory
	closed bool
}

// memory is the newest events of a partition: of records from ≤ offset < to.
type memory struct {
	from, to int64
	events   *Builder
}

// Range is a range of records of a partition, and how many events of it are in a file.
type Range struct {
	From, To int64
	Rows     int
}

const (
	fileSuffix = ".col"
	tempSuffix = ".tmp"
)

// Open opens the directory, and makes it. log names the log whose events they are, and
// positions are how far history has each partition: files of another log, of records
// that history lacks, or that are damaged are removed.
func Open(dir, log string, positions map[int]int64, logger *slog.Logger) (*Set, error) {
	s := &Set{dir: dir, log: log, logger: logger, files: map[int][]*file{}, memory: map[int]*memory{}, sealed: map[int]*memory{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("columns of history: %w", err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("columns of history: %w", err)
	}
	var all []*file
	for _, n := range names {
		path := filepath.Join(dir, n.Name())
		if strings.HasSuffix(n.Name(), tempSuffix) {
			_ = os.Remove(path) // of a crash
			continue
		}
		if !strings.HasSuffix(n.Name(), fileSuffix) {
			continue
		}
		x, err := openFile(path)
		if err == nil && (x.log != log || x.to > positions[x.partition]) {
			x.done()
			err = errors.New("its events are not those of history")
		}
		if err != nil {
			logger.Warn("a file of columns is removed; it is made again from history", "file", path, "reason", err)
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.close(all)
				return nil, fmt.Errorf("columns of history: %w", err)
			}
			continue
		}
		all = append(all, x)
	}
	// The larger first: a crash may have left those that it was made of.
	slices.SortFunc(all, func(x, y *file) int { return cmp.Compare(y.to-y.from, x.to-x.from) })
	for _, x := range all {
		if slices.ContainsFunc(s.files[x.partition], func(y *file) bool { return x.from < y.to && y.from < x.to }) {
			_ = s.removeFile(x)
			continue
		}
		s.insert(x)
	}
	return s, nil
}

func (s *Set) close(files []*file) {
	for _, x := range files {
		x.done()
	}
}

// Close closes all files.
func (s *Set) Close() {
	s.extending.Lock()
	defer s.extending.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, files := range s.files {
		s.close(files)
	}
	s.files, s.memory, s.sealed, s.closed = map[int][]*file{}, map[int]*memory{}, map[int]*memory{}, true
}

// Remove removes the columns of a history that no process has open.
func Remove(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("columns of history: %w", err)
	}
	return nil
}

// insert puts a file among those of its partition.
func (s *Set) insert(x *file) {
	files := append(s.files[x.partition], x)
	slices.SortFunc(files, func(x, y *file) int { return cmp.Compare(x.from, y.from) })
	s.files[x.partition] = files
}

// removeFile removes a file that is in no list any more.
func (s *Set) removeFile(x *file) error {
	err := os.Remove(x.path)
	x.done()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Bytes is the size of all files.
func (s *Set) Bytes() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, files := range s.files {
		for _, x := range files {
			n += x.bytes
		}
	}
	return n
}

// Files lists what files have of a partition, in order.
func (s *Set) Files(partition int) (out []Range) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.files[partition] {
		out = append(out, Range{x.from, x.to, x.rows})
	}
	return out
}

// MemoryTo is where the events end that are in memory, or in files before them.
func (s *Set) MemoryTo(partition int) int64 { return s.Memory(partition).To }

// Memory is what memory has of a partition, behind what is sealed.
func (s *Set) Memory(partition int) Range {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.newest(partition)
	return Range{m.from, m.to, m.events.rows}
}

// newest is the partition's memory. The lock must be held.
func (s *Set) newest(partition int) *memory {
	m := s.memory[partition]
	if m == nil {
		end := int64(0)
		if files := s.files[partition]; len(files) > 0 {
			end = files[len(files)-1].to
		}
		m = &memory{from: end, to: end, events: NewBuilder()}
		s.memory[partition] = m
	}
	return m
}

// Seal has the partition's memory become a file, unless it has fewer than so many events;
// [Set.AddSealed] then writes it. Until that has happened no more is sealed.
func (s *Set) Seal(partition, fewest int) bool {
	s.extending.Lock()
	defer s.extending.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed[partition] != nil {
		return true
	}
	m := s.newest(partition)
	if m.events.rows < fewest {
		return false
	}
	s.sealed[partition] = m
	s.memory[partition] = &memory{from: m.to, to: m.to, events: NewBuilder()}
	return true
}

// AddSealed is [Set.Add] of what is sealed, which stays sealed after an error. Nothing may be
// forgotten meanwhile.
func (s *Set) AddSealed(partition int) error {
	s.mu.Lock()
	m := s.sealed[partition]
	s.mu.Unlock()
	if m == nil {
		return nil
	}
	return s.Add(partition, m.from, m.to, m.events)
}

// Add makes a file of all events of the records from ≤ offset < to. Files of parts of the
// range go.
func (s *Set) Add(partition int, from, to int64, events *Builder) error {
	path := filepath.Join(s.dir, fmt.Sprintf("%d-%016x-%016x%s", partition, from, to, fileSuffix))
	if err := writeFile(path+tempSuffix, header{s.log, partition, from, to, events.rows}, events); err != nil {
		return fmt.Errorf("columns of history: %w", err)
	}
	s.extending.Lock()
	defer s.extending.Unlock()
	if err := os.Rename(path+tempSuffix, path); err != nil {
		return fmt.Errorf("columns of history: %w", err)
	}
	x, err := openFile(path)
	if err != nil {
		// In no list, it would stay when its events are erased.
		return fmt.Errorf("columns of history: %w", errors.Join(err, os.Remove(path)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		x.done()
		return nil
	}
	s.files[partition] = slices.DeleteFunc(s.files[partition], func(y *file) bool {
		inside := y.from >= from && y.to <= to
		if inside && y.path == path {
			y.done() // replaced by the rename
		} else if inside {
			if err := s.removeFile(y); err != nil {
				s.logger.Warn("a file of columns could not be removed", "file", y.path, "error", err)
			}
		}
		return inside
	})
	s.insert(x)
	if m := s.sealed[partition]; m != nil && to > m.from {
		delete(s.sealed, partition)
		if to < m.to {
			s.memory[partition] = nil // it no longer begins where something ends
		}
	}
	if m := s.newest(partition); to > m.from {
		s.memory[partition] = nil
	}
	return nil
}

// Extend brings the memory of a partition up to a record. read reads the events of the
// records from ≤ offset < to and hands each piece to add, which calls its argument with
// the builder. After an error the memory is empty.
func (s *Set) Extend(partition int, to int64, read func(from int64, add func(func(*Builder))) error) error {
	s.extending.Lock()
	defer s.extending.Unlock()
	s.mu.Lock()
	m := s.newest(partition)
	closed := s.closed
	s.mu.Unlock()
	if closed || m.to >= to {
		return nil
	}
	err := read(m.to, func(fill func(*Builder)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fill(m.events)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.memory[partition] = &memory{from: m.from, to: m.from, events: NewBuilder()}
		return err
	}
	m.to = to
	return nil
}

// Skip is Extend over records that have no events, if the memory still ends at a record.
func (s *Set) Skip(partition int, at, to int64) {
	s.extending.Lock()
	defer s.extending.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.newest(partition); m.to == at {
		m.to = max(m.to, to)
	}
}

// Forget removes everything with events of an account. It must be durable before what
// was erased counts as erased; until then no file of these events may be added.
func (s *Set) Forget(partition int, account uint64) error {
	s.extending.Lock()
	defer s.extending.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.removeUnlisted(partition)
	s.files[partition] = slices.DeleteFunc(s.files[partition], func(x *file) bool {
		if !x.has(account) {
			return false
		}
		if e := os.Remove(x.path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
			return false
		}
		x.done()
		return true
	})
	s.forgetMemory(partition, account)
	if err == nil {
		err = syncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("columns of history: %w", err)
	}
	return nil
}

// removeUnlisted removes the files of a partition that are in no list: those that could not be
// removed when they left it. Both locks are held.
func (s *Set) removeUnlisted(partition int) error {
	names, err := os.ReadDir(s.dir)
	for _, n := range names {
		path := filepath.Join(s.dir, n.Name())
		if !strings.HasPrefix(n.Name(), strconv.Itoa(partition)+"-") || !strings.HasSuffix(n.Name(), fileSuffix) ||
			slices.ContainsFunc(s.files[partition], func(x *file) bool { return x.path == path }) {
			continue
		}
		if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// ForgetMemory is Forget of what is in memory alone.
func (s *Set) ForgetMemory(partition int, account uint64) {
	s.extending.Lock()
	defer s.extending.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetMemory(partition, account)
}

// forgetMemory empties a partition's memory, and what is sealed of it, where events of an
// account are in either. The locks must be held.
func (s *Set) forgetMemory(partition int, account uint64) {
	if x := s.sealed[partition]; x != nil && x.events.accounts[account] != nil {
		delete(s.sealed, partition)
		s.memory[partition] = &memory{from: x.from, to: x.from, events: NewBuilder()}
		return
	}
	if m := s.memory[partition]; m != nil && m.events.accounts[account] != nil {
		s.memory[partition] = &memory{from: m.from, to: m.from, events: NewBuilder()}
	}
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// piece is a part of the range of records that a question is about: what a file has, or
// what the memory has, or else what history must be asked for.
type piece struct {
	from, to int64
	file     *file
	memory   *view
}

// plan cuts a range into pieces; files in it are in use.
func (s *Set) plan(q *query.MatchQuery, keys []string) (out []piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, end := q.From, q.Cut.UpTo
	if q.To > 0 {
		end = min(end, q.To)
	}
	rest := func(to int64) {
		if at < to {
			out = append(out, piece{from: at, to: to})
			at = to
		}
	}
	for _, x := range s.files[q.Cut.Partition] {
		if x.from < at || x.to > end {
			continue
		}
		rest(x.from)
		x.use()
		out = append(out, piece{from: x.from, to: x.to, file: x})
		at = x.to
	}
	for _, m := range []*memory{s.sealed[q.Cut.Partition], s.memory[q.Cut.Partition]} {
		if m == nil || at >= m.to || m.from >= end {
			continue
		}
		rest(m.from)
		to := min(end, m.to)
		v, kept := m.events.view(q.Account, q.EventType, keys)
		if kept {
			out = append(out, piece{from: at, to: to, memory: v})
			at = to
		}
	}
	rest(end)
	return out
}

// view is a group as it is now, nil where there are no such events; kept is false where
// a key is not there.
func (b *Builder) view(account uint64, eventType string, keys []string) (v *view, kept bool) {
	g := b.accounts[account][eventType]
	if g == nil {
		return &view{}, true
	}
	v = &view{rows: len(g.ordinal), offset: g.offset, ordinal: ordinals{values: g.ordinal}, times: times{values: g.timeMs}, columns: make([]viewColumn, len(keys))}
	for i, key := range keys {
		at := slices.IndexFunc(g.columns, func(c *column) bool { return c.key == key })
		switch {
		case g.unreadable || at < 0 && g.partial || at >= 0 && g.columns[at].dropped:
			return nil, false
		case at >= 0:
			c := g.columns[at]
			v.columns[i] = viewColumn{numbers{values: c.numbers}, c.texts}
		}
	}
	return v, true
}

// Matches calls fn with the events of a question that [Answers] reports to be of the
// kind, as [query.MatchQuery] says, in any order, and rest with the ranges of records
// that history must be asked for. merged are the aliases at the cut.
func (s *Set) Matches(ctx context.Context, q *query.MatchQuery, merged *Aliases, rest func(from, to int64) error, fn func(*query.MatchBlock) error) error {
	keys := wanted(q)
	pieces := s.plan(q, keys)
	defer func() {
		for _, p := range pieces {
			if p.file != nil {
				p.file.done()
			}
		}
	}()
	work := scratches.Get().(*scratch)
	defer scratches.Put(work)
	open := Range{From: -1}
	for _, p := range pieces {
		if err := ctx.Err(); err != nil {
			return err
		}
		answered := false
		var err error
		switch {
		case p.memory != nil:
			answered, err = true, p.memory.scan(q, keys, p.from, p.to, merged, work, fn)
		case p.file != nil:
			answered, err = s.scanFile(p.file, q, keys, merged, work, fn)
		}
		switch {
		case err != nil:
			return err
		case answered:
		case open.From >= 0 && open.To == p.from:
			open.To = p.to
		default:
			if open.From >= 0 {
				if err := rest(open.From, open.To); err != nil {
					return err
				}
			}
			open = Range{From: p.from, To: p.to}
		}
	}
	if open.From >= 0 {
		return rest(open.From, open.To)
	}
	return nil
}

// scanFile is a scan of a file; answered is false where it has not what is asked for. fn
// has not been called then.
func (s *Set) scanFile(x *file, q *query.MatchQuery, keys []string, merged *Aliases, work *scratch, fn func(*query.MatchBlock) error) (answered bool, err error) {
	g, err := x.group(q.Account, q.EventType)
	var v *view
	switch {
	case err != nil:
	case g == nil || q.AfterMs != nil && g.maxMs <= *q.AfterMs || q.UntilMs != nil && g.minMs > *q.UntilMs:
		return true, nil
	default:
		v, answered, err = x.view(g, keys, work)
	}
	if err != nil {
		s.drop(x, err)
		return false, nil
	}
	if !answered {
		return false, nil
	}
	return true, v.scan(q, keys, q.From, q.Cut.UpTo, merged, work, fn)
}

// drop removes a file that cannot be read.
func (s *Set) drop(x *file, reason error) {
	s.logger.Warn("a file of columns is removed; it is made again from history", "file", x.path, "reason", reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	files := s.files[x.partition]
	if i := slices.Index(files, x); i >= 0 {
		s.files[x.partition] = slices.Delete(files, i, i+1)
		if err := s.removeFile(x); err != nil {
			s.logger.Warn("a file of columns could not be removed", "file", x.path, "error", err)
		}
	}
}

// Whole reports whether a question about a cut is answered without asking history.
func (s *Set) Whole(q *query.MatchQuery) bool {
	keys := wanted(q)
	pieces := s.plan(q, keys)
	whole := true
	for _, p := range pieces {
		if p.file != nil {
			if whole {
				g, err := p.file.group(q.Account, q.EventType)
				whole = err == nil
				for _, key := range keys {
					if whole && g != nil {
						_, whole = g.column(key)
					}
				}
			}
			p.file.done()
		} else if p.memory == nil {
			whole = false
		}
	}
	return whole
}
