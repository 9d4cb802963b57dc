package dedup

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// A Run is an immutable file of idempotency keys, sorted by hash: blocks of
// entries, then a filter, then the first hash of each block, then a footer.
// See docs/formats.md.
type Run struct {
	Name   string // of the file
	file   vfs.File
	Count  uint64 // keys
	Newest int64  // the largest time of an entry
	filter filter
	first  []identifier.Hash // the first hash of each block
	block  []byte            // scratch; reads are by the one goroutine that applies
}

const (
	runEntrySize    = 16 + 8 + 4
	runBlockEntries = 128
	runBlockSize    = runBlockEntries*runEntrySize + 4
	runFooterSize   = 8 + 8 + 8 + 4 + 4
	runMagic        = 0x324e5552 // "RUN2"
	runMagic1       = 0x314e5552 // "RUN1", see filter.scattered
	filterWords     = 8          // words of a block of the filter: one cache line
	filterBits      = 12         // bits a key
	filterProbes    = 6
)

// runChecksum is the table of checksums in runs.
var runChecksum = crc32.MakeTable(crc32.Castagnoli)

func filterSize(n uint64) int {
	lines := (n*filterBits + filterWords*64 - 1) / (filterWords * 64)
	return int(max(lines, 1)) * filterWords
}

// filter is a Bloom filter in blocks of a line.
type filter struct {
	words []uint64
	// scattered: the lines are not in order of hashes, as in files of older versions. Filling
	// those in order of hashes missed the processor's cache with each key.
	scattered bool
}

// line is where a key's bits are: the line by the first four bytes of the hash, by which
// entries are sorted, the bits by the last eight. The hash is uniform, so no more mixing.
func (f filter) line(h identifier.Hash) (line []uint64, bits uint64) {
	lines := uint64(len(f.words) / filterWords)
	at := uint64(binary.BigEndian.Uint32(h[:])) * lines >> 32
	bits = binary.LittleEndian.Uint64(h[8:])
	if f.scattered {
		at = (binary.LittleEndian.Uint64(h[8:]) >> 32) * lines >> 32
		bits = binary.LittleEndian.Uint64(h[:])
	}
	return f.words[at*filterWords:][:filterWords], bits
}

func (f filter) add(h identifier.Hash) {
	line, bits := f.line(h)
	for range filterProbes {
		line[bits>>6&7] |= 1 << (bits & 63)
		bits >>= 9
	}
}

func (f filter) has(h identifier.Hash) bool {
	line, bits := f.line(h)
	for range filterProbes {
		if line[bits>>6&7]&(1<<(bits&63)) == 0 {
			return false
		}
		bits >>= 9
	}
	return true
}

type runEntry struct {
	hash identifier.Hash
	Answer
}

// runWriter writes entries, given in order of their hash, to a new file.
type runWriter struct {
	fs     vfs.FS
	path   string
	file   vfs.File
	buf    []byte
	inBlk  int
	blk    int // where the current block starts in buf
	count  uint64
	newest int64
	filter filter
	first  []identifier.Hash
	worked func() // after each block
	err    error
}

func newRunWriter(fs vfs.FS, path string, capacity uint64, worked func()) (*runWriter, error) {
	f, err := statefiles.Create(fs, path)
	if err != nil {
		return nil, err
	}
	return &runWriter{fs: fs, path: path, file: f, filter: filter{words: make([]uint64, filterSize(capacity))}, worked: worked}, nil
}

func (w *runWriter) add(e runEntry) {
	if w.inBlk == 0 {
		w.blk = len(w.buf)
		w.first = append(w.first, e.hash)
	}
	w.buf = append(w.buf, e.hash[:]...)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(e.AtMs))
	w.buf = binary.LittleEndian.AppendUint32(w.buf, e.Ordinal)
	w.filter.add(e.hash)
	w.count++
	w.newest = max(w.newest, e.AtMs)
	if w.inBlk++; w.inBlk == runBlockEntries {
		w.endBlock()
	}
}

func (w *runWriter) endBlock() {
	w.buf = binary.LittleEndian.AppendUint32(w.buf, crc32.Checksum(w.buf[w.blk:], runChecksum))
	w.inBlk = 0
	if len(w.buf) >= 1<<20 {
		w.flush()
	}
	w.worked()
}

func (w *runWriter) flush() {
	if w.err == nil {
		_, w.err = w.file.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// finish makes the file durable (not its directory entry).
func (w *runWriter) finish() error {
	if w.inBlk > 0 {
		w.endBlock()
	}
	w.flush()
	start := len(w.buf)
	for _, x := range w.filter.words {
		w.buf = binary.LittleEndian.AppendUint64(w.buf, x)
	}
	for _, h := range w.first {
		w.buf = append(w.buf, h[:]...)
	}
	w.buf = binary.LittleEndian.AppendUint64(w.buf, w.count)
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(w.newest))
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(len(w.filter.words)))
	w.buf = binary.LittleEndian.AppendUint32(w.buf, runMagic)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, crc32.Checksum(w.buf[start:], runChecksum))
	w.flush()
	err := w.err
	if err == nil {
		err = w.file.Sync()
	}
	return errors.Join(err, w.file.Close())
}

// sortParts is into how many parts keys are divided by their first bits before each is sorted:
// their hashes are uniform, so the parts are alike, and small enough for the processor's cache.
const (
	sortBits  = 12
	sortParts = 1 << sortBits
)

func sortPart(h identifier.Hash) int {
	return int(binary.BigEndian.Uint16(h[:]) >> (16 - sortBits))
}

// sorted returns the answers in order of their keys' hashes. It calls worked after each piece
// of work.
func (a Answers) sorted(worked func()) []runEntry {
	const atOnce = 1024 // answers: less than 100 µs
	n := 0
	one := func() {
		if n++; n%atOnce == 0 {
			worked()
		}
	}
	var ends [sortParts + 1]int
	a.each(func(h identifier.Hash, _ Answer) {
		ends[sortPart(h)+1]++
		one()
	})
	for i := range sortParts {
		ends[i+1] += ends[i]
	}
	entries := make([]runEntry, a.Size())
	a.each(func(h identifier.Hash, v Answer) {
		at := &ends[sortPart(h)]
		entries[*at] = runEntry{h, v}
		*at++
		one()
	})
	for from, i := 0, 0; i < sortParts; from, i = ends[i], i+1 {
		part := entries[from:ends[i]]
		slices.SortFunc(part, func(x, y runEntry) int {
			if d := cmp.Compare(binary.BigEndian.Uint64(x.hash[:]), binary.BigEndian.Uint64(y.hash[:])); d != 0 {
				return d
			}
			return bytes.Compare(x.hash[:], y.hash[:])
		})
		for range part {
			one()
		}
	}
	return entries
}

// WriteRun writes keys as a run. It calls worked after each piece of work, some 100 µs long
// at most, so that the caller can pause.
func WriteRun(fs vfs.FS, path string, keys Answers, worked func()) error {
	entries := keys.sorted(worked)
	w, err := newRunWriter(fs, path, uint64(len(entries)), worked)
	if err != nil {
		return err
	}
	for _, e := range entries {
		w.add(e)
	}
	return w.finish()
}

// OpenRun opens a run and reads its filter and index.
func OpenRun(fs vfs.FS, path, name string) (_ *Run, err error) {
	f, err := fs.Open(path, vfs.RandomReadsOption)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	bad := func(reason string) error { return statefiles.Damaged(path, "%s", reason) }
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if size < runFooterSize {
		return nil, bad("shorter than its footer")
	}
	var foot [runFooterSize]byte
	if _, err = f.ReadAt(foot[:], size-runFooterSize); err != nil {
		return nil, err
	}
	r := &Run{Name: name, file: f, block: make([]byte, runBlockSize)}
	r.Count = binary.LittleEndian.Uint64(foot[0:])
	r.Newest = int64(binary.LittleEndian.Uint64(foot[8:]))
	words := binary.LittleEndian.Uint64(foot[16:])
	blocks := (r.Count + runBlockEntries - 1) / runBlockEntries
	magic := binary.LittleEndian.Uint32(foot[24:])
	if magic != runMagic && magic != runMagic1 || r.Count > uint64(size) || words > uint64(size) ||
		words%filterWords != 0 || words == 0 {
		return nil, bad("bad footer")
	}
	tail := int64(words*8 + blocks*16)
	if int64(r.Count*runEntrySize+blocks*4)+tail+runFooterSize != size {
		return nil, bad("its length does not fit its footer")
	}
	b := make([]byte, tail+runFooterSize)
	if _, err = f.ReadAt(b, size-int64(len(b))); err != nil {
		return nil, err
	}
	if crc32.Checksum(b[:len(b)-4], runChecksum) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return nil, bad("checksum of the index")
	}
	r.filter = filter{make([]uint64, words), magic == runMagic1}
	for i := range r.filter.words {
		r.filter.words[i] = binary.LittleEndian.Uint64(b[i*8:])
	}
	r.first = make([]identifier.Hash, blocks)
	for i := range r.first {
		copy(r.first[i][:], b[words*8+uint64(i)*16:])
	}
	return r, nil
}

// Close closes the file.
func (r *Run) Close() error { return r.file.Close() }

// readBlock reads the entries of a block.
func (r *Run) readBlock(i int, buf []byte) ([]byte, error) {
	at := int64(i) * runBlockSize
	n := min(runBlockEntries, r.Count-uint64(i)*runBlockEntries)
	b := buf[:n*runEntrySize+4]
	if _, err := r.file.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("idempotency file %s at byte %d: %w", r.Name, at, err)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, runChecksum) != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil, statefiles.Damaged(r.Name, "the checksum of the block at byte %d does not match", at)
	}
	return body, nil
}

func entryAt(block []byte, i int) runEntry {
	b := block[i*runEntrySize:]
	var e runEntry
	copy(e.hash[:], b)
	e.AtMs = int64(binary.LittleEndian.Uint64(b[16:]))
	e.Ordinal = binary.LittleEndian.Uint32(b[24:])
	return e
}

func (r *Run) get(h identifier.Hash) (Answer, bool, error) {
	if r.Count == 0 || !r.filter.has(h) {
		return Answer{}, false, nil
	}
	i, found := slices.BinarySearchFunc(r.first, h, func(a, b identifier.Hash) int { return bytes.Compare(a[:], b[:]) })
	if !found {
		i--
	}
	if i < 0 {
		return Answer{}, false, nil
	}
	block, err := r.readBlock(i, r.block)
	if err != nil {
		return Answer{}, false, err
	}
	lo, hi := 0, len(block)/runEntrySize
	for lo < hi {
		mid := (lo + hi) / 2
		if bytes.Compare(block[mid*runEntrySize:][:16], h[:]) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(block)/runEntrySize {
		if e := entryAt(block, lo); e.hash == h {
			return e.Answer, true, nil
		}
	}
	return Answer{}, false, nil
}

// runCursor walks a run in order, with a buffer of its own.
type runCursor struct {
	r     *Run
	block []byte
	buf   []byte
	i, n  int // block, entry within it
	cur   runEntry
	done  bool
}

func (r *Run) cursor() (*runCursor, error) {
	c := &runCursor{r: r, buf: make([]byte, runBlockSize), i: -1}
	return c, c.next()
}

func (c *runCursor) next() (err error) {
	if c.n*runEntrySize >= len(c.block) {
		c.i++
		c.n = 0
		if c.i >= len(c.r.first) {
			c.done = true
			return nil
		}
		if c.block, err = c.r.readBlock(c.i, c.buf); err != nil {
			return err
		}
	}
	c.cur = entryAt(c.block, c.n)
	c.n++
	return nil
}

// MergeRuns merges runs (oldest first) into a new file and leaves out keys
// that are not after dropBefore.
func MergeRuns(fs vfs.FS, path string, runs []*Run, dropBefore int64, worked func()) error {
	var capacity uint64
	cursors := make([]*runCursor, len(runs))
	for i, r := range runs {
		c, err := r.cursor()
		if err != nil {
			return err
		}
		cursors[i] = c
		capacity += r.Count
	}
	w, err := newRunWriter(fs, path, capacity, worked)
	if err != nil {
		return err
	}
	for {
		var best *runCursor
		for _, c := range cursors {
			// Of equal hashes the one in the newest run is kept.
			if !c.done && (best == nil || bytes.Compare(c.cur.hash[:], best.cur.hash[:]) <= 0) {
				best = c
			}
		}
		if best == nil {
			return w.finish()
		}
		e := best.cur
		if e.AtMs > dropBefore {
			w.add(e)
		}
		for _, c := range cursors {
			for !c.done && c.cur.hash == e.hash {
				if err := c.next(); err != nil {
					return errors.Join(err, w.file.Close())
				}
			}
		}
	}
}
