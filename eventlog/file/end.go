package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// The file end of a partition says how far its records go at least. [Log.NoteEnds], Open
// and Close write it, always after these records are durable. A log only grows, so it
// stays true whatever is appended later; it is how a last segment is noticed that was cut
// short where a torn batch would look the same. Once all partitions have the file the
// meta file says so, and a log whose file is missing or damaged is not opened. The file also
// says where the records began then: it is how a start file is noticed that was removed.

const (
	endName  = "end"
	endBytes = 48
)

var endMagic = [8]byte{'M', 'U', 'S', 'T', 'R', 'E', 'N', 'D'}

// noted is what the file says.
type noted struct {
	// next is the offset behind the newest record, -1 where there is no file.
	next int64
	// start is the offset of the oldest record kept, at least; 0 before the first trim, and
	// in files of older builds.
	start int64
}

// encodeEnd is the content of the file.
func encodeEnd(partition int, logID uint64, n noted) []byte {
	b := make([]byte, endBytes)
	copy(b, endMagic[:])
	le := binary.LittleEndian
	le.PutUint32(b[8:], smallVersion)
	le.PutUint32(b[12:], uint32(partition))
	le.PutUint64(b[16:], logID)
	le.PutUint64(b[24:], uint64(n.next))
	le.PutUint64(b[32:], uint64(n.start))
	le.PutUint32(b[44:], checksum(b[:44]))
	return b
}

// decodeEnd returns what the file of a partition says, ok false where it is not such a
// file.
func decodeEnd(b []byte, partition int, logID uint64) (n noted, ok bool) {
	le := binary.LittleEndian
	if len(b) != endBytes || [8]byte(b[:8]) != endMagic || le.Uint32(b[44:]) != checksum(b[:44]) ||
		le.Uint32(b[8:]) != smallVersion || le.Uint32(b[12:]) != uint32(partition) || le.Uint64(b[16:]) != logID {
		return noted{}, false
	}
	n = noted{next: int64(le.Uint64(b[24:])), start: int64(le.Uint64(b[32:]))}
	if n.start < 0 || n.start > n.next {
		return noted{}, false
	}
	return n, true
}

// readEnd returns what the file of a partition of a log says; ok is false where it is
// damaged, there where there is one.
func readEnd(fsys vfs.FS, path string, partition int, logID uint64) (n noted, ok, there bool, err error) {
	f, err := fsys.Open(path)
	if isNotExist(err) {
		return n, false, false, nil
	}
	if err != nil {
		return n, false, false, fmt.Errorf("open %s: %w", path, err)
	}
	defer f.Close()
	b := make([]byte, endBytes+1)
	read, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, false, true, fmt.Errorf("read %s: %w", path, err)
	}
	n, ok = decodeEnd(b[:read], partition, logID)
	return n, ok, true, nil
}

// NoteEnd makes the file end of a partition of the log in dir, which has this identity and no
// process has open, say that its records go to next at least. Where they begin it says as
// before.
func NoteEnd(fsys vfs.FS, dir string, id uint64, partition int, next int64) error {
	p := (&Log{opts: (&Options{FS: fsys}).withDefaults(), dir: dir, id: id}).newPartition(partition)
	n, _, _, err := readEnd(fsys, p.endPath(), partition, id)
	if err != nil {
		return err
	}
	return ReplaceFile(fsys, p.dir, endName, encodeEnd(partition, id, noted{next: next, start: n.start}))
}

// NotedEnd returns how far at least the records of a partition went, by the file end of
// the log in dir, which has this identity; 0 where nothing says so.
func NotedEnd(fsys vfs.FS, dir string, id uint64, partition int) (next int64, err error) {
	p := (&Log{opts: (&Options{FS: fsys}).withDefaults(), dir: dir, id: id}).newPartition(partition)
	n, _, _, err := readEnd(fsys, p.endPath(), partition, id)
	return n.next, err
}

func (p *partition) endPath() string { return p.log.opts.FS.PathJoin(p.dir, endName) }

// readNoted reads how far the records go at least, for checkEnd. The error is a
// [*eventlog.CorruptError] where the file must be there and cannot be used.
func (p *partition) readNoted() error {
	p.noted = noted{next: -1}
	n, ok, there, err := readEnd(p.log.opts.FS, p.endPath(), p.id, p.log.id)
	switch {
	case err != nil:
		return err
	case ok:
		p.noted = n
	case p.log.flags&metaEnds != 0:
		reason := "the file is missing"
		if there {
			reason = "it is not the file that was written"
		}
		return withSmallRemedy(&eventlog.CorruptError{File: p.endPath(), Reason: reason})
	case there:
		p.log.opts.Logger.Warn("ignoring a damaged file of the log; it is rewritten", "file", p.endPath())
	}
	return nil
}

// checkEnd compares the end that was found with the one that was noted.
func (p *partition) checkEnd(last *segment, found segmentEnd) error {
	if found.next >= p.noted.next {
		return nil
	}
	return &eventlog.CorruptError{
		File: last.path, Position: found.pos, Offset: found.next,
		Reason: fmt.Sprintf("records are missing: they end here, but the file %s beside it says that there were some up to offset %d", endName, p.noted.next-1),
		Remedy: "Put the files of the log back as they were, or restore a backup",
	}
}

// NoteEnds makes durable from where and how far the records of all partitions go, so that
// a start notices if records before that are missing, also after a crash. A log that only
// grows needs it now and then, not after each record.
func (l *Log) NoteEnds() error {
	select {
	case <-l.closing:
		return eventlog.ErrClosed
	default:
		return l.noteEnds(false)
	}
}

// noteEnds is NoteEnds for a log that may be closing. again also writes what has not
// changed. A log without any record is left alone: its meta file says as much.
func (l *Log) noteEnds(again bool) error {
	l.endsMu.Lock()
	defer l.endsMu.Unlock()
	if err := l.failed(); err != nil {
		return err
	}
	bounds, records := make([]noted, len(l.partitions)), false
	for i, p := range l.partitions {
		bounds[i].start, bounds[i].next = p.bounds()
		records = records || bounds[i].next > 0
	}
	if !records {
		return nil
	}
	for i, p := range l.partitions {
		if p.noted == bounds[i] && !again {
			continue
		}
		if err := ReplaceFile(l.opts.FS, p.dir, endName, encodeEnd(p.id, l.id, bounds[i])); err != nil {
			return err
		}
		p.noted = bounds[i]
	}
	if l.flags&metaEnds != 0 {
		return nil
	}
	m := l.meta(l.flags | metaEnds)
	if err := writeSmall(l.opts.FS, l.dir, metaName, m); err != nil {
		return err
	}
	l.flags = m.flags
	return nil
}

// noteEndsQuietly is for where nothing is lost when it fails.
func (l *Log) noteEndsQuietly(again bool) {
	if err := l.noteEnds(again); err != nil && !errors.Is(err, eventlog.ErrFailed) {
		l.opts.Logger.Warn("how far the log goes could not be noted; the next checkpoint or stop tries again", "err", err)
	}
}

// noRecords is that the file end is missing in a partition that has no record.
func noRecords(path string) error {
	return &eventlog.CorruptError{File: path, Reason: "it says how far the records go, it is missing or damaged, and there is not one record",
		Remedy: "Put the files of the log back as they were, or restore a backup"}
}
