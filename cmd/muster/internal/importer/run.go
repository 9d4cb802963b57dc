package importer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
)

// Target takes the chunks of a file.
type Target interface {
	// next is the first row of the file that was never sent. refused are the rows before
	// it, from row from on, that were refused: ascending, and none only when there are no
	// more.
	next(ctx context.Context, file [32]byte, from uint64) (next uint64, refused []uint32, err error)
	// store stores a chunk whose first row is the next one, or one to be tried again.
	store(ctx context.Context, file [32]byte, c *chunk) (result, error)
}

// result is the outcome of a chunk.
type result struct {
	accepted, duplicates uint64
	refused              []refusedRow
	next                 uint64
}

type refusedRow struct {
	place  int // in the chunk
	reason string
}

// maxReasons is how many refused rows a summary names.
const maxReasons = 20

// Refused is a row that was refused.
type Refused struct {
	Line   int // in the file, from 1
	Reason string
}

// Summary says what became of a file's rows. Before the end it is the progress
// so far.
type Summary struct {
	// Rows were read, Skipped of them because they were stored before. Those that an
	// earlier import refused are tried again, and are not among them.
	Rows, Skipped uint64
	// Accepted were stored, Duplicates were known by their idempotency key,
	// RefusedRows were not stored.
	Accepted, Duplicates, RefusedRows uint64
	// Refused are the first of the refused rows.
	Refused []Refused
	// BytesRead of the file.
	BytesRead int64
}

// ErrChanged means that a file's content changed while it was read.
var ErrChanged = errors.New("the file changed while it was imported; import it again when it is complete")

// each opens the file for fn, without a byte order mark.
func (s *Source) each(fn func(io.Reader) error) error {
	in, err := s.open()
	if err != nil {
		return err
	}
	defer in.Close()
	b := bufio.NewReaderSize(in, 256<<10)
	if head, _ := b.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		b.Discard(3) //nolint:errcheck // it was peeked at
	}
	return fn(b)
}

// refusedBefore asks for all rows of a file that were refused.
func refusedBefore(ctx context.Context, t Target, file [32]byte) (next uint64, refused *roaring.Bitmap, err error) {
	refused = roaring.New()
	for from := uint64(0); ; {
		var more []uint32
		if next, more, err = t.next(ctx, file, from); err != nil || len(more) == 0 {
			return next, refused, err
		}
		refused.AddMany(more)
		from = uint64(more[len(more)-1]) + 1
	}
}

// Run imports a file from where an earlier import of it ended, and tries the rows again
// that were refused. progress is called after each chunk; it may be nil.
func Run(ctx context.Context, s *Source, f Format, t Target, progress func(Summary)) (Summary, error) {
	var sum Summary
	columns := s.CSV
	if f == CSV {
		if err := s.each(func(r io.Reader) (err error) { columns.found, err = kindsOf(r, columns); return err }); err != nil {
			return sum, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	skip, refused, err := refusedBefore(ctx, t, s.Hash)
	if err != nil {
		return sum, err
	}
	in, err := s.open()
	if err != nil {
		return sum, err
	}
	defer in.Close()
	hash := sha256.New()
	counted := &countingReader{r: io.TeeReader(in, hash)}
	rows, err := newRowReader(f, counted, columns)
	if err != nil {
		return sum, fmt.Errorf("%s: %w", s.Name, err)
	}

	ctx, cancel := context.WithCancel(ctx)
	free, full := make(chan *chunk, 2), make(chan *chunk)
	free <- &chunk{}
	free <- &chunk{}
	var total uint64
	produced := make(chan error, 1)
	go func() {
		var err error
		total, err = produce(ctx, rows, counted.n.Load, skip, refused, free, full)
		close(full)
		produced <- err
	}()
	for c := range full {
		if err = consume(ctx, s, t, c, &sum); err != nil {
			break
		}
		if progress != nil {
			sum.Skipped = skip - refused.GetCardinality()
			sum.Rows = c.first + uint64(c.rows())
			progress(sum)
		}
		free <- c
	}
	cancel()
	for range full {
	}
	readErr := <-produced
	sum.Rows, sum.Skipped, sum.BytesRead = total, min(skip, total)-refused.GetCardinality(), counted.n.Load()
	switch {
	case err != nil:
		return sum, err
	case readErr != nil:
		return sum, fmt.Errorf("%s: %w", s.Name, readErr)
	}
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return sum, fmt.Errorf("%s: %w", s.Name, err)
	}
	if !bytes.Equal(hash.Sum(nil), s.Hash[:]) {
		return sum, fmt.Errorf("%s: %w", s.Name, ErrChanged)
	}
	return sum, nil
}

// consume stores a chunk and adds it to the summary.
func consume(ctx context.Context, s *Source, t Target, c *chunk, sum *Summary) error {
	r, err := t.store(ctx, s.Hash, c)
	if err != nil {
		return err
	}
	if want := c.first + uint64(c.rows()); r.next != want && (!c.again || r.next < want) {
		return fmt.Errorf("%s: after row %d the next is %d, not %d: another import of this file runs at the same time. Run this one again when it has ended; no row is stored twice",
			s.Name, want-1, r.next, want)
	}
	sum.Accepted += r.accepted
	sum.Duplicates += r.duplicates
	sum.RefusedRows += uint64(len(r.refused))
	sum.BytesRead = c.bytes
	for _, x := range r.refused {
		if len(sum.Refused) < maxReasons {
			sum.Refused = append(sum.Refused, Refused{c.lines[x.place], x.reason})
		}
	}
	return nil
}

type countingReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
