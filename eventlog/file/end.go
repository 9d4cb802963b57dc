package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// The file end of a partition says how far its records go at least. Close writes it.
// A log only grows, so it stays true whatever is appended later; it is how a last
// segment is noticed that was cut short where a torn batch would look the same. A
// log without it, or with one that cannot be read, is opened all the same.

const (
	endName  = "end"
	endBytes = 48
)

var endMagic = [8]byte{'M', 'U', 'S', 'T', 'R', 'E', 'N', 'D'}

// encodeEnd is the content of the file: the offset behind the newest record.
func encodeEnd(partition int, logID uint64, next int64) []byte {
	b := make([]byte, endBytes)
	copy(b, endMagic[:])
	le := binary.LittleEndian
	le.PutUint32(b[8:], formatVersion)
	le.PutUint32(b[12:], uint32(partition))
	le.PutUint64(b[16:], logID)
	le.PutUint64(b[24:], uint64(next))
	le.PutUint32(b[44:], checksum(b[:44]))
	return b
}

// decodeEnd returns the offset that the file of a partition names, ok false where it
// is not such a file.
func decodeEnd(b []byte, partition int, logID uint64) (next int64, ok bool) {
	le := binary.LittleEndian
	if len(b) != endBytes || [8]byte(b[:8]) != endMagic || le.Uint32(b[44:]) != checksum(b[:44]) ||
		le.Uint32(b[8:]) != formatVersion || le.Uint32(b[12:]) != uint32(partition) || le.Uint64(b[16:]) != logID {
		return 0, false
	}
	next = int64(le.Uint64(b[24:]))
	return next, next >= 0
}

// readEnd returns the offset that the file of a partition of a log names; ok is false
// where it is damaged, there where there is one.
func readEnd(fsys vfs.FS, path string, partition int, logID uint64) (next int64, ok, there bool, err error) {
	f, err := fsys.Open(path)
	if isNotExist(err) {
		return 0, false, false, nil
	}
	if err != nil {
		return 0, false, false, fmt.Errorf("open %s: %w", path, err)
	}
	defer f.Close()
	b := make([]byte, endBytes+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false, true, fmt.Errorf("read %s: %w", path, err)
	}
	next, ok = decodeEnd(b[:n], partition, logID)
	return next, ok, true, nil
}

// ClosedAt returns how far the records of a partition went when the log in dir, which
// has this identity, was closed last; 0 where nothing says so.
func ClosedAt(fsys vfs.FS, dir string, id uint64, partition int) (next int64, err error) {
	p := (&Log{opts: (&Options{FS: fsys}).withDefaults(), dir: dir, id: id}).newPartition(partition)
	next, ok, _, err := readEnd(fsys, fsys.PathJoin(p.dir, endName), partition, id)
	if !ok {
		next = 0
	}
	return next, err
}

// checkEnd compares the end that was found with the one that the file names.
func (p *partition) checkEnd(last *segment, found segmentEnd) error {
	fsys := p.log.opts.FS
	path := fsys.PathJoin(p.dir, endName)
	next, ok, there, err := readEnd(fsys, path, p.id, p.log.id)
	switch {
	case err != nil:
		return err
	case !there:
	case !ok:
		p.log.opts.Logger.Warn("ignoring a damaged file of the log; the next stop writes it anew", "file", path)
	case found.next < next:
		return &eventlog.CorruptError{
			File: last.path, Position: found.pos, Offset: found.next,
			Reason: fmt.Sprintf("the records end here, but there were some up to offset %d when the log was closed", next-1),
		}
	}
	return nil
}

// writeEnd makes durable how far the records go.
func (p *partition) writeEnd() error {
	_, end := p.bounds()
	return replaceFile(p.log.opts.FS, p.dir, endName, encodeEnd(p.id, p.log.id, end))
}

// replaceFile replaces a file of a directory whole; when it returns nil the new
// content is durable.
func replaceFile(fsys vfs.FS, dir, name string, content []byte) (err error) {
	path := fsys.PathJoin(dir, name)
	tmp := path + tmpSuffix
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	f, err := fsys.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(tmp, path)
	}
	if err != nil {
		return err
	}
	return syncDir(fsys, dir)
}
