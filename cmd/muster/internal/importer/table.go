package importer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/ingest"
)

// Table is what a whole CSV file holds, before it is said what its columns mean.
type Table struct {
	// Header has the names of the columns, as the first row has them.
	Header []string
	// Types has what the cells of each column are: text, number, boolean, or empty where
	// none has anything in it.
	Types []string
	// First are the first rows.
	First [][]string
	// Rows is how many there are, malformed ones too.
	Rows uint64
}

// ReadTable reads a CSV file and keeps its first rows. It fails on a file that cannot be
// imported whatever its columns mean.
func ReadTable(ctx context.Context, r io.Reader, first int) (t Table, err error) {
	c, header, err := openCSV(withoutMark(contextReader{ctx, r}))
	if err != nil {
		return t, err
	}
	t.Header = slices.Clone(header)
	kinds, err := c.kinds(func(cells []string, _ int) error {
		t.Rows++
		if len(t.First) < first && len(cells) == len(t.Header) {
			t.First = append(t.First, slices.Clone(cells))
		}
		return nil
	})
	for _, k := range kinds {
		t.Types = append(t.Types, map[cellKind]string{textCell: "text", numberCell: "number", booleanCell: "boolean"}[k])
	}
	return t, err
}

// Found sets the options to what [ReadTable] found out about the columns.
func (o *CSVOptions) Found(types []string) {
	o.found = make([]cellKind, len(types))
	for i, name := range types {
		k, known := cellKinds[name]
		if !known {
			k = freeCell
		}
		o.found[i] = k
	}
}

// withoutMark passes over a byte order mark.
func withoutMark(r io.Reader) *bufio.Reader {
	b := bufio.NewReaderSize(r, 256<<10)
	if head, _ := b.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		b.Discard(3) //nolint:errcheck // it was peeked at
	}
	return b
}

// CheckField says what is wrong with what a column is to stand for. own reports whether
// the field has a type of its own, so that none may be declared.
func CheckField(field string, people bool) (own bool, err error) {
	if people && saysSubscribed(field) {
		return true, nil
	}
	path, kind, err := columnPath(field)
	switch {
	case err != nil && people:
		return false, errors.New("must be email, external_id, phone, first_name, last_name, subscribed, unsubscribed, attributes.x or geo.x, or empty to leave the column out")
	case err != nil:
		return false, errors.New("must be event_type, timestamp, idempotency_key, email, external_id, phone, first_name, last_name, properties.x, attributes.x or geo.x, or empty to leave the column out")
	case people && (len(path) == 1 || path[0] == "properties"):
		return false, errors.New("is of events; people have email, external_id, phone, first_name, last_name, subscribed, unsubscribed, attributes.x and geo.x")
	}
	return kind != freeCell, nil
}

// Row is one row of a file.
type Row struct {
	// JSON is the event, or {"user": …} of a person; it is valid until the next row is
	// read. Cells are its cells, likewise; none of a malformed row.
	JSON  []byte
	Cells []string
	Line  int    // where it begins, from 1
	Fault string // why it cannot be taken, empty if it may be
	// Subscribed is what the row of a person says of that, nil where it says nothing.
	Subscribed *bool
}

// Rows reads the rows of a CSV file in order.
type Rows struct {
	in *csvRows
	r  row
}

// NewRows begins to read a file. The error says what is wrong with its columns.
func NewRows(r io.Reader, o CSVOptions) (*Rows, error) {
	c, err := newCSV(withoutMark(r), o)
	if err != nil {
		return nil, err
	}
	return &Rows{in: c}, nil
}

// Next reads a row; [io.EOF] is the end.
func (t *Rows) Next(x *Row) error {
	t.in.cells = nil
	if err := t.in.next(&t.r); err != nil {
		return err
	}
	*x = Row{JSON: t.r.json, Cells: t.in.cells, Line: t.r.line, Fault: t.r.fault, Subscribed: t.r.subscribed}
	return nil
}

// Checker judges rows as the service does, but for what its state says of them.
type Checker struct {
	decoder *ingest.Decoder
	people  bool
	now     func() time.Time
	buf     []byte
}

// NewChecker returns a checker of events, or of people.
func NewChecker(people bool, now func() time.Time) (*Checker, error) {
	d, err := ingest.NewDecoder(ingest.Limits{})
	if err != nil {
		return nil, err
	}
	return &Checker{decoder: d, people: people, now: now}, nil
}

// Check says why a row would be refused, "" if it would not.
func (c *Checker) Check(x *Row) string {
	if x.Fault != "" {
		return x.Fault
	}
	text := x.JSON
	if c.people {
		// A person is judged as the user of an event.
		if len(text) <= len("{}") {
			return "the row is empty"
		}
		c.buf = append(c.buf[:0], `{"event_type":"contact","timestamp":1,`...)
		text = append(c.buf, text[1:]...)
		c.buf = text
	}
	c.decoder.StartImport([32]byte{}, 0, false)
	if err := c.decoder.AppendImportRow(text, c.now().UnixMilli()); err != nil {
		if c.people {
			return strings.ReplaceAll(err.Error(), "user.", "")
		}
		return err.Error()
	}
	return ""
}

// Chunk is consecutive rows of a stored file of events, on their way through a target.
type Chunk struct {
	target Target
	file   [32]byte
	c      chunk
}

// Stored says what became of a chunk.
type Stored struct {
	Accepted, Duplicates uint64
	Refused              []Refused
	// Next is the first row of the file that is not stored.
	Next uint64
}

// NewChunk returns an empty chunk of the file with this SHA-256.
func NewChunk(t Target, file [32]byte) *Chunk { return &Chunk{target: t, file: file} }

// Next is the first row of the file that was never sent. The rows of refused lie before
// it and are to be tried again.
func (c *Chunk) Next(ctx context.Context) (next uint64, refused *roaring.Bitmap, err error) {
	return refusedBefore(ctx, c.target, c.file)
}

// Reset empties the chunk; its first row is to be first. again says that its rows are
// those that were refused before, and rows between them.
func (c *Chunk) Reset(first uint64, again bool) {
	c.c.reset(first)
	c.c.again = again
}

// Pass counts a row that is stored, which is between rows that are tried again.
func (c *Chunk) Pass() { c.c.add(&row{fault: storedBefore}) }

// Add adds a row.
func (c *Chunk) Add(x *Row) { c.c.add(&row{json: x.JSON, line: x.Line, fault: x.Fault}) }

// Bytes is the size of its rows.
func (c *Chunk) Bytes() int { return len(c.c.data) }

// Store stores the rows as one record.
func (c *Chunk) Store(ctx context.Context) (s Stored, err error) {
	r, err := c.target.store(ctx, c.file, &c.c)
	if err != nil {
		return s, err
	}
	s = Stored{Accepted: r.accepted, Duplicates: r.duplicates, Next: r.next}
	for _, x := range r.refused {
		s.Refused = append(s.Refused, Refused{c.c.lines[x.place], x.reason})
	}
	return s, nil
}

// RawRows begins to read a file whatever its columns mean: its rows have cells and no
// JSON.
func RawRows(r io.Reader) (*Rows, error) {
	c, _, err := openCSV(withoutMark(r))
	if err != nil {
		return nil, err
	}
	return &Rows{in: c}, nil
}
