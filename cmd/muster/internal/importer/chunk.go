package importer

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

// The bounds of a chunk. A chunk is one record of the log.
const (
	chunkRows  = 5000
	chunkBytes = 2 << 20
)

// chunk is consecutive rows of a file.
type chunk struct {
	first uint64 // number of the first row, from 0
	data  []byte // the rows' JSON, one behind the other
	ends  []int  // where each row ends in data; rows with a fault are empty
	lines []int
	// faults are why rows are no events, by their place in the chunk.
	faults map[int]string
	// again reports that the chunk has rows that were refused before. Those between them are
	// stored; they are left out, with the fault storedBefore.
	again bool
	// bytes is how much of the file was read when the chunk was full.
	bytes int64
}

// storedBefore is the fault of a row that is left out of a chunk of rows that are tried
// again, because it is stored.
const storedBefore = "stored before"

func (c *chunk) reset(first uint64) {
	*c = chunk{first: first, data: c.data[:0], ends: c.ends[:0], lines: c.lines[:0], faults: map[int]string{}}
}

func (c *chunk) rows() int { return len(c.ends) }

func (c *chunk) row(i int) []byte {
	start := 0
	if i > 0 {
		start = c.ends[i-1]
	}
	return c.data[start:c.ends[i]]
}

func (c *chunk) add(r *row) {
	if r.fault != "" {
		c.faults[len(c.ends)] = r.fault
	} else {
		c.data = append(c.data, r.json...)
	}
	c.ends = append(c.ends, len(c.data))
	c.lines = append(c.lines, r.line)
}

// split returns the chunk's halves, which share its memory.
func (c *chunk) split() [2]*chunk {
	n := c.rows() / 2
	var out [2]*chunk
	for h, at := range [2][2]int{{0, n}, {n, c.rows()}} {
		part := &chunk{first: c.first + uint64(at[0]), lines: c.lines[at[0]:at[1]], faults: map[int]string{}, again: c.again, bytes: c.bytes}
		start := 0
		if at[0] > 0 {
			start = c.ends[at[0]-1]
		}
		for i := at[0]; i < at[1]; i++ {
			part.ends = append(part.ends, c.ends[i]-start)
			if f, ok := c.faults[i]; ok {
				part.faults[i-at[0]] = f
			}
		}
		part.data = c.data[start:c.ends[at[1]-1]]
		out[h] = part
	}
	return out
}

// produce reads rows into chunks, until the file ends: those before skip that were
// refused, and then all from skip on. Chunks come from free and go to full.
func produce(ctx context.Context, in rowReader, read func() int64, skip uint64, refused *roaring.Bitmap, free <-chan *chunk, full chan<- *chunk) (rows uint64, err error) {
	var r row
	take := func() error {
		if err := in.next(&r); err != nil {
			return err
		}
		rows++
		return nil
	}
	send := func(c *chunk) error {
		c.bytes = read()
		select {
		case full <- c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var again *chunk // ends with a row that was refused
	for rows < skip {
		if rows%1024 == 0 && ctx.Err() != nil {
			return rows, ctx.Err()
		}
		if err := take(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return rows, err
		}
		n := rows - 1 // the row's number
		if n > math.MaxUint32 || !refused.Contains(uint32(n)) {
			continue
		}
		if again != nil && (n-again.first >= chunkRows || len(again.data) >= chunkBytes) {
			if err := send(again); err != nil {
				return rows, err
			}
			again = nil
		}
		if again == nil {
			select {
			case again = <-free:
			case <-ctx.Done():
				return rows, ctx.Err()
			}
			again.reset(n)
			again.again = true
		}
		for again.first+uint64(again.rows()) < n {
			again.add(&row{fault: storedBefore})
		}
		again.add(&r)
	}
	if again != nil {
		if err := send(again); err != nil {
			return rows, err
		}
	}
	if rows < skip {
		return rows, nil // the file has become shorter
	}
	for more := true; more; {
		var c *chunk
		select {
		case c = <-free:
		case <-ctx.Done():
			return rows, ctx.Err()
		}
		c.reset(rows)
		for c.rows() < chunkRows && len(c.data) < chunkBytes {
			if err := take(); errors.Is(err, io.EOF) {
				more = false
				break
			} else if err != nil {
				return rows, err
			}
			c.add(&r)
		}
		if c.rows() == 0 {
			break
		}
		if err := send(c); err != nil {
			return rows, err
		}
	}
	return rows, nil
}
