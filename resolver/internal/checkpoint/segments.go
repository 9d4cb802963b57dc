package checkpoint

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/statefiles"
	"github.com/musterhq/muster/segment/engine"
)

// Files of segment state form a chain: the first holds all values, each later
// one those that changed since the one before. docs/formats.md describes them.
const (
	segmentMagic = "MSEGSTA1"
	// maxSegmentFiles bounds the chain.
	maxSegmentFiles = 32
)

// SegmentFile is one file of the chain.
type SegmentFile struct {
	name string
	size int64
}

// FrozenEngine is an account's engine in a generation.
type FrozenEngine struct {
	Account uint64 // its number
	State   *engine.Frozen
}

// WholeSegments reports whether the next file should hold all values: when the
// later files have outgrown the first, or are too many.
func WholeSegments(chain []SegmentFile) bool {
	if len(chain) == 0 || len(chain) >= maxSegmentFiles {
		return true
	}
	var later int64
	for _, f := range chain[1:] {
		later += f.size
	}
	return later > chain[0].size+1<<20
}

func segmentFileName(offset int64, whole bool) string {
	if whole {
		return fmt.Sprintf("%020d.all", offset)
	}
	return fmt.Sprintf("%020d.new", offset)
}

// WriteSegments writes a generation's file and returns the chain with it.
func (c *Dir) WriteSegments(f *Frozen, pauses *Pauses) ([]SegmentFile, error) {
	name := segmentFileName(f.Next, f.WholeSegments)
	size, err := writeSegmentFile(c.FS, c.Path(DirSegments, name), f.Engines, pauses)
	if err != nil {
		_ = c.FS.Remove(c.Path(DirSegments, name)) // it may be half written; it is rewritten
		return nil, err
	}
	var chain []SegmentFile
	if !f.WholeSegments {
		chain = append(chain, f.Chain...)
	}
	return append(chain, SegmentFile{name, size}), statefiles.SyncDir(c.FS, c.Path(DirSegments))
}

func writeSegmentFile(fs vfs.FS, path string, engines []FrozenEngine, pauses *Pauses) (size int64, err error) {
	out, err := statefiles.Create(fs, path)
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := out.Close(); err == nil {
			err = e
		}
	}()
	sum := crc32.New(statefiles.Castagnoli)
	// The sum first: a file may change the bytes it is handed.
	count := &countingWriter{w: io.MultiWriter(sum, out), pauses: pauses}
	w := bufio.NewWriterSize(count, 1<<16) // half a millisecond's work
	if _, err := w.WriteString(segmentMagic); err != nil {
		return 0, err
	}
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(engines)))
	if _, err := w.Write(n[:]); err != nil {
		return 0, err
	}
	for _, e := range engines {
		binary.LittleEndian.PutUint64(n[:], e.Account)
		if _, err := w.Write(n[:]); err != nil {
			return 0, err
		}
		if err := e.State.Write(w); err != nil {
			return 0, err
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	if _, err := out.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return 0, err
	}
	return count.n + 4, out.Sync()
}

// countingWriter counts what is written, and pauses after each piece.
type countingWriter struct {
	w      io.Writer
	n      int64
	pauses *Pauses
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.pauses.worked()
	return n, err
}

// readSegmentFile hands each account's part to its restorer.
func readSegmentFile(fs vfs.FS, path string, into map[uint64]*engine.Restorer) (size int64, err error) {
	in, err := fs.Open(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() < int64(len(segmentMagic)+12) {
		return 0, fmt.Errorf("%s is damaged: too short", path)
	}
	// The checksum first: what follows trusts the bytes.
	body := info.Size() - 4
	sum := crc32.New(statefiles.Castagnoli)
	if _, err := io.Copy(sum, io.NewSectionReader(in, 0, body)); err != nil {
		return 0, err
	}
	var tail [4]byte
	if _, err := in.ReadAt(tail[:], body); err != nil {
		return 0, err
	}
	if binary.LittleEndian.Uint32(tail[:]) != sum.Sum32() {
		return 0, fmt.Errorf("%s is damaged: checksum", path)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(in, 0, body), 1<<18)
	var head [len(segmentMagic) + 8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	if string(head[:len(segmentMagic)]) != segmentMagic {
		return 0, fmt.Errorf("%s is no file of segment state, or %w", path, statefiles.ErrNewer)
	}
	for n := binary.LittleEndian.Uint64(head[len(segmentMagic):]); n > 0; n-- {
		var number [8]byte
		if _, err := io.ReadFull(r, number[:]); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		account := binary.LittleEndian.Uint64(number[:])
		if into[account] == nil {
			into[account] = engine.NewRestorer()
		}
		if err := into[account].Read(r); err != nil {
			return 0, fmt.Errorf("%s: account %016x: %w", path, account, err)
		}
	}
	return info.Size(), nil
}

// SegmentStates is what a chain of files says of the engines, by account.
type SegmentStates struct {
	Chain []SegmentFile
	Of    map[uint64]*engine.Restorer
	Err   error
}

// ReadSegments reads the chain that a manifest lists.
func (c *Dir) ReadSegments(names []string) SegmentStates {
	s := SegmentStates{Of: map[uint64]*engine.Restorer{}}
	for _, name := range names {
		size, err := readSegmentFile(c.FS, c.Path(DirSegments, name), s.Of)
		if err != nil {
			s.Err = err
			return s
		}
		s.Chain = append(s.Chain, SegmentFile{name, size})
	}
	return s
}

// DiscardSegments removes the files that are in old but not in kept.
func (c *Dir) DiscardSegments(old, kept []SegmentFile) error {
	still := map[string]bool{}
	for _, f := range kept {
		still[f.name] = true
	}
	for _, f := range old {
		if !still[f.name] {
			if err := c.FS.Remove(c.Path(DirSegments, f.name)); err != nil {
				return err
			}
		}
	}
	return nil
}
