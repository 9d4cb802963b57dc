package uploads

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"slices"
)

// places reads the rows of a CSV file with where they stand in it.
type places struct {
	in     *csv.Reader
	header []string
	start  int64 // where the first row is
	from   int64 // where the next one is
}

func newPlaces(f *os.File) (*places, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, info.Size()), 256<<10)
	p := &places{}
	if head, _ := r.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		r.Discard(3) //nolint:errcheck // it was peeked at
		p.from = 3
	}
	p.in = csv.NewReader(r)
	p.in.FieldsPerRecord, p.in.ReuseRecord = -1, true
	start := p.from
	header, err := p.in.Read()
	p.header = slices.Clone(header)
	p.from = start + p.in.InputOffset()
	p.start = start
	return p, err
}

// next returns the cells of a row, none of a malformed one, and where it is: from the end
// of the row before to its own end, with the line break. [io.EOF] is the end.
func (p *places) next() (cells []string, from, to int64, err error) {
	cells, err = p.in.Read()
	var malformed *csv.ParseError
	if errors.As(err, &malformed) {
		cells, err = nil, nil
	}
	from = p.from
	p.from = p.start + p.in.InputOffset()
	return cells, from, p.from, err
}
