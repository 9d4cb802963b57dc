package importer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Format is how a file's rows are written.
type Format string

// The formats.
const (
	JSONLines Format = "jsonl"
	CSV       Format = "csv"
)

// maxRowBytes bounds a row of a file. The largest event that is taken is far
// smaller.
const maxRowBytes = 4 << 20

// row is one row of a file.
type row struct {
	// json is the event; it is valid until the next row is read.
	json []byte
	// line is the number of the line where the row begins, from 1.
	line int
	// fault is why the row is no event, "" if it may be one.
	fault string
	// subscribed is what a row of a person says of that, nil where it says nothing.
	subscribed *bool
}

// rowReader reads the rows of a file in order. An error other than [io.EOF]
// means that the file cannot be read on; a row with a fault does not.
type rowReader interface {
	next(*row) error
}

func newRowReader(f Format, r io.Reader, o CSVOptions) (rowReader, error) {
	in := bufio.NewReaderSize(r, 256<<10)
	if head, _ := in.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		in.Discard(3) //nolint:errcheck // it was peeked at
	}
	switch f {
	case JSONLines:
		return &jsonLines{in: in}, nil
	case CSV:
		return newCSV(in, o)
	}
	return nil, fmt.Errorf("format %q is not known; use jsonl or csv", f)
}
