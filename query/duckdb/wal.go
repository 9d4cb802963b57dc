package duckdb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// walBegin is how DuckDB begins a write-ahead log: property 100, the kind of an entry,
// is 98, a version, whose property 101 follows.
var walBegin = []byte{100, 0, 98, 101, 0}

// checkWAL tells a write-ahead log from other bytes. DuckDB takes those for one that was
// cut off when it was begun, and passes over them without a word; entries behind the
// first have checksums, which DuckDB compares.
func checkWAL(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, len(walBegin))
	n, err := io.ReadFull(f, b)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	case err != nil:
		return err
	}
	if !bytes.HasPrefix(walBegin, b[:n]) {
		return fmt.Errorf("%s does not begin as a write-ahead log of DuckDB: the file is damaged", path)
	}
	return nil
}
