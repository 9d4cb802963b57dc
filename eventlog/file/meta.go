package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// The small files (meta, start) hold a magic, four integers and a checksum,
// and are replaced whole: written beside, made durable, renamed.

const (
	metaName   = "meta"
	startName  = "start"
	lockName   = "LOCK"
	tmpSuffix  = ".tmp"
	smallBytes = 32
)

var (
	metaMagic  = [8]byte{'M', 'U', 'S', 'T', 'R', 'M', 'T', 'A'}
	startMagic = [8]byte{'M', 'U', 'S', 'T', 'R', 'S', 'T', 'A'}
)

// small is the content of a meta or a start file.
type small struct {
	magic [8]byte
	// number is the partition count (meta) or the partition (start).
	number uint32
	// value is the log's identity (meta) or the start offset (start).
	value uint64
	// flags are those of a meta file; 0 in a start file.
	flags uint32
}

// metaEnds says that each partition has a file end: without it the log is not opened.
const metaEnds = 1

func (s *small) encode() []byte {
	b := make([]byte, smallBytes)
	copy(b, s.magic[:])
	le := binary.LittleEndian
	le.PutUint32(b[8:], smallVersion)
	le.PutUint32(b[12:], s.number)
	le.PutUint64(b[16:], s.value)
	le.PutUint32(b[24:], s.flags)
	le.PutUint32(b[28:], checksum(b[:28]))
	return b
}

func decodeSmall(b []byte, magic [8]byte) (s small, reason string) {
	le := binary.LittleEndian
	switch {
	case len(b) != smallBytes:
		return s, fmt.Sprintf("%d bytes, expected %d", len(b), smallBytes)
	case [8]byte(b[:8]) != magic:
		return s, "unknown magic"
	case le.Uint32(b[28:]) != checksum(b[:28]):
		return s, "checksum does not match"
	case le.Uint32(b[8:]) != smallVersion:
		return s, fmt.Sprintf("format version %d, this build reads version %d", le.Uint32(b[8:]), smallVersion)
	}
	return small{magic: magic, number: le.Uint32(b[12:]), value: le.Uint64(b[16:]), flags: le.Uint32(b[24:])}, ""
}

// readSmall reads a small file; found is false when there is none.
func readSmall(fsys vfs.FS, path string, magic [8]byte) (s small, found bool, err error) {
	f, err := fsys.Open(path)
	if isNotExist(err) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("open %s: %w", path, err)
	}
	defer f.Close()
	b := make([]byte, smallBytes+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return s, false, fmt.Errorf("read %s: %w", path, err)
	}
	s, reason := decodeSmall(b[:n], magic)
	if reason != "" {
		return s, false, &eventlog.CorruptError{File: path, Reason: reason}
	}
	return s, true, nil
}

// writeSmall replaces a small file; when it returns nil the new content is
// durable. dir is the directory the file is in.
func writeSmall(fsys vfs.FS, dir, name string, s small) error {
	return ReplaceFile(fsys, dir, name, s.encode())
}

// syncDir makes the directory's entries durable.
func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// syncAbove makes the entries of dir and its parents durable. Each may have
// been made by a start that was killed before it came to this. A parent that
// this process may not open was not made by it.
func syncAbove(fsys vfs.FS, dir string) error {
	for parent := fsys.PathDir(dir); parent != dir; dir, parent = parent, fsys.PathDir(parent) {
		if err := syncDir(fsys, parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func isNotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist)
}
