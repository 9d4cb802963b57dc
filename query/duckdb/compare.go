package duckdb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
)

// Rebuilt is a history that is made from the log again, in a file of its own, to compare
// a stopped one with.
type Rebuilt struct {
	path string
	opts Options
	s    *Store
}

// NewRebuilt makes an empty one in the file at path, which must not be there. Its rows
// begin with record from of the partition.
func NewRebuilt(path string, opts Options, partition int, from int64) (*Rebuilt, error) {
	s, err := Open(path, opts)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		if err := s.writer.exec(fmt.Sprintf("INSERT INTO progress VALUES (%d, %d)", partition, from)); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return &Rebuilt{path: path, opts: opts, s: s}, nil
}

// Append adds the rows of further records.
func (r *Rebuilt) Append(ctx context.Context, b *query.Batch) error { return r.s.Append(ctx, b) }

// Close closes the file.
func (r *Rebuilt) Close() error {
	if r.s == nil {
		return nil
	}
	s := r.s
	r.s = nil
	return s.Close()
}

// Compared is the result of [Rebuilt.Compare].
type Compared struct {
	// Same says that there is no difference.
	Same bool
	// Rows are those that the history has of the records compared, Want those that were
	// made again, Table where they differ.
	Rows, Want int64
	Table      string
	// Offset is the first record whose rows differ.
	Offset int64
}

// comparedColumns are those of the tables that hold what follows from records.
var comparedColumns = map[string]string{
	"events":      "account, record_offset, record_index, ordinal, time_ms, event_type, properties, idempotency_key",
	"transitions": "account, record_offset, seq, segment, ordinal, entered, cause, at_ms",
	"aliases":     "account, record_offset, record_index, seq, ordinal, winner",
}

// Compare compares the rows of a partition's records from one offset to another in the
// file at path, which no process has open, with those that were made again; rows of erased
// profiles, by account, do not count. It closes this file, and changes nothing in the
// other one.
func (r *Rebuilt) Compare(ctx context.Context, path string, partition int, from, to int64, erased map[uint64][]uint32) (out Compared, err error) {
	if err := r.Close(); err != nil {
		return out, err
	}
	have, err := openRows(ctx, path, r.opts, partition, erased)
	if err != nil {
		return out, fmt.Errorf("history: %s: %w", path, err)
	}
	defer have.close()
	want, err := openRows(ctx, r.path, r.opts, partition, erased)
	if err != nil {
		return out, fmt.Errorf("history: %s: %w", r.path, err)
	}
	defer want.close()
	for _, table := range []string{"events", "aliases", "transitions"} {
		if table == "transitions" && have.version < 2 {
			continue
		}
		differ := func(from, to int64) (have1, want1 rowsDigest, err error) {
			if have1, err = have.digest(ctx, table, from, to); err == nil {
				want1, err = want.digest(ctx, table, from, to)
			}
			return have1, want1, err
		}
		h, w, err := differ(from, to)
		if err != nil {
			return out, fmt.Errorf("history: compare %s: %w", table, err)
		}
		if table == "events" {
			out.Rows, out.Want = h.rows, w.rows
		}
		if h == w {
			continue
		}
		out.Rows, out.Want, out.Table = h.rows, w.rows, table
		for out.Offset = from; to-out.Offset > 1; {
			middle := out.Offset + (to-out.Offset)/2
			h, w, err := differ(out.Offset, middle)
			if err != nil {
				return out, fmt.Errorf("history: compare %s: %w", table, err)
			}
			if h != w {
				to = middle
			} else {
				out.Offset = middle
			}
		}
		return out, nil
	}
	out.Same = true
	return out, nil
}

// rowsReader reads rows of one partition from a file.
type rowsReader struct {
	db        bindings.Database
	c         *conn
	version   int64
	partition int
}

// rowsDigest stands for rows in no order.
type rowsDigest struct {
	rows int64
	sum  string
}

func openRows(ctx context.Context, path string, opts Options, partition int, erased map[uint64][]uint32) (r *rowsReader, err error) {
	opts = opts.withDefaults(path)
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	opts.readOnly = true
	r = &rowsReader{partition: partition}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err := openDatabase(path, opts, &r.db); err != nil {
		return nil, err
	}
	if r.c, err = connect(r.db); err != nil {
		return nil, err
	}
	if r.version, err = readVersion(r.c); err != nil {
		return nil, err
	}
	if err := r.c.exec("CREATE TEMP TABLE erased (account UBIGINT, ordinal UINTEGER)"); err != nil {
		return nil, err
	}
	for account, ordinals := range erased {
		for len(ordinals) > 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			n := min(len(ordinals), 1000)
			var values []string
			for _, o := range ordinals[:n] {
				values = append(values, fmt.Sprintf("(%d, %d)", account, o))
			}
			if err := r.c.exec("INSERT INTO erased VALUES " + strings.Join(values, ", ")); err != nil {
				return nil, err
			}
			ordinals = ordinals[n:]
		}
	}
	return r, nil
}

func (r *rowsReader) close() {
	if r.c != nil {
		r.c.close()
	}
	if r.db.Ptr != nil {
		bindings.Close(&r.db)
	}
}

// digest reads the rows of records from one offset to another.
func (r *rowsReader) digest(ctx context.Context, table string, from, to int64) (d rowsDigest, err error) {
	if r.version == noTables {
		return rowsDigest{sum: "0"}, nil
	}
	who := "e.ordinal = t.ordinal"
	if table == "aliases" {
		who = "(" + who + " OR e.ordinal = t.winner)"
	}
	sql := fmt.Sprintf(`SELECT count(*), coalesce(sum(hash(%s)), 0)::VARCHAR FROM %s t
		WHERE "partition" = ? AND record_offset >= ? AND record_offset < ?
		AND NOT EXISTS (SELECT 1 FROM erased e WHERE e.account = t.account AND %s)`, comparedColumns[table], table, who)
	err = r.c.query(ctx, sql, []any{uint32(r.partition), from, to}, func(ch chunk) error {
		d.rows, d.sum = column[int64](ch, 0)[0], strings.Clone(ch.text(1)[0])
		return nil
	})
	return d, err
}
