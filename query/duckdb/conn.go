package duckdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/query"
)

// conn is one connection: one statement at a time, one transaction at a time.
// It is not safe for concurrent use.
type conn struct {
	c bindings.Connection
	// dead is why there is no connection, nil when there is one.
	dead error
}

func connect(db bindings.Database) (*conn, error) {
	c := new(conn)
	return c, c.connect(db)
}

func (c *conn) connect(db bindings.Database) error {
	if bindings.Connect(db, &c.c) != bindings.StateSuccess {
		return errors.New("duckdb: cannot connect")
	}
	c.dead = nil
	return nil
}

func (c *conn) close() {
	if c.c.Ptr != nil {
		bindings.Disconnect(&c.c)
		c.c = bindings.Connection{}
	}
}

// exec runs statements without parameters, one after the other, until one fails.
func (c *conn) exec(sql string) error {
	if c.dead != nil {
		return c.dead
	}
	var statements bindings.ExtractedStatements
	defer bindings.DestroyExtracted(&statements)
	n := bindings.ExtractStatements(c.c, sql, &statements)
	if n == 0 {
		return fmt.Errorf("parse: %w", failure(bindings.ExtractStatementsError(statements)))
	}
	for i := range n {
		if err := c.execOne(statements, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) execOne(statements bindings.ExtractedStatements, i bindings.IdxT) error {
	var stmt bindings.PreparedStatement
	defer bindings.DestroyPrepare(&stmt)
	if bindings.PrepareExtractedStatement(c.c, statements, i, &stmt) != bindings.StateSuccess {
		return fmt.Errorf("prepare: %w", failure(bindings.PrepareError(stmt)))
	}
	return execute(stmt, nil)
}

// query runs one statement with its parameters bound by position and hands
// each chunk of the result to fn (nil: ignore them). A chunk is valid during
// the call only. When ctx ends the statement is interrupted and ctx's error
// returned.
func (c *conn) query(ctx context.Context, sql string, args []any, fn func(chunk) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.dead != nil {
		return c.dead
	}
	var stmt bindings.PreparedStatement
	defer bindings.DestroyPrepare(&stmt)
	if bindings.Prepare(c.c, sql, &stmt) != bindings.StateSuccess {
		return fmt.Errorf("prepare: %w", failure(bindings.PrepareError(stmt)))
	}
	for i, a := range args {
		if err := bind(stmt, i+1, a); err != nil {
			return err
		}
	}
	finish := c.interruptWith(ctx)
	err := execute(stmt, fn)
	finish()
	if ctxErr := ctx.Err(); err != nil && ctxErr != nil {
		return ctxErr
	}
	return err
}

// integer asks for one BIGINT; 0 when there is no row.
func (c *conn) integer(ctx context.Context, sql string, args ...any) (n int64, err error) {
	err = c.query(ctx, sql, args, func(ch chunk) error {
		n = column[int64](ch, 0)[0]
		return nil
	})
	return n, err
}

// interruptWith interrupts the connection's statement when ctx ends, until the
// returned function is called. DuckDB drops an interruption that comes
// before a statement begins, so it is repeated.
func (c *conn) interruptWith(ctx context.Context) (finish func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	done, gone := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			bindings.Interrupt(c.c)
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		close(done)
		if !stop() {
			<-gone
		}
	}
}

// execute runs a statement, and hands each chunk of its result to fn (nil: ignore them).
func execute(stmt bindings.PreparedStatement, fn func(chunk) error) error {
	var pending bindings.PendingResult
	defer bindings.DestroyPending(&pending)
	if bindings.PendingPreparedStreaming(stmt, &pending) != bindings.StateSuccess {
		return failure(bindings.PendingError(pending))
	}
	if err := await(pending); err != nil {
		return err
	}
	var res bindings.Result
	defer bindings.DestroyResult(&res)
	if bindings.ExecutePending(pending, &res) != bindings.StateSuccess {
		return failure(bindings.ResultError(&res))
	}
	for {
		dc := bindings.FetchChunk(res)
		if dc.Ptr == nil {
			if msg := bindings.ResultError(&res); msg != "" {
				return failure(msg)
			}
			return nil
		}
		var err error
		if fn != nil {
			err = fn(chunk{dc: dc, rows: int(bindings.DataChunkGetSize(dc))})
		}
		bindings.DestroyDataChunk(&dc)
		if err != nil {
			return err
		}
	}
}

// leastNap and mostNap bound how long await sleeps while DuckDB's own threads work.
const (
	leastNap = 20 * time.Microsecond
	mostNap  = 500 * time.Microsecond
)

// await works on a statement until its result is ready. Where a thread of DuckDB has
// taken the work, it sleeps: DuckDB's own functions would ask for more work without a
// pause, and occupy a processor until that thread is done.
func await(pending bindings.PendingResult) error {
	nap := leastNap
	for {
		switch bindings.PendingExecuteTask(pending) {
		case bindings.PendingStateResultReady:
			return nil
		case bindings.PendingStateError:
			return failure(bindings.PendingError(pending))
		case bindings.PendingStateNoTasksAvailable:
			time.Sleep(nap)
			nap = min(2*nap, mostNap)
		default: // a part of the work is done
			nap = leastNap
		}
	}
}

func bind(stmt bindings.PreparedStatement, i int, a any) error {
	idx := bindings.IdxT(i)
	var state bindings.State
	switch v := a.(type) {
	case int64:
		state = bindings.BindInt64(stmt, idx, v)
	case uint64:
		state = bindings.BindUInt64(stmt, idx, v)
	case uint32:
		state = bindings.BindUInt32(stmt, idx, v)
	case float64:
		state = bindings.BindDouble(stmt, idx, v)
	case bool:
		state = bindings.BindBoolean(stmt, idx, v)
	case string:
		state = bindings.BindVarcharLength(stmt, idx, v, bindings.IdxT(len(v)))
	default:
		return fmt.Errorf("duckdb: parameter %d: cannot bind a %T", i, a)
	}
	if state != bindings.StateSuccess {
		return fmt.Errorf("duckdb: cannot bind parameter %d (%T)", i, a)
	}
	return nil
}

// chunk is a piece of a result.
type chunk struct {
	dc   bindings.DataChunk
	rows int
}

// column returns a fixed-width column of a chunk. T must be the column's
// type; the column must not hold NULLs.
func column[T int64 | uint64 | uint32 | uint8 | bool](c chunk, col int) []T {
	v := bindings.DataChunkGetVector(c.dc, bindings.IdxT(col))
	return unsafe.Slice((*T)(bindings.VectorGetData(v)), c.rows)
}

// text returns the strings of a column as copies.
func (c chunk) text(col int) []string {
	refs := c.refs(col)
	out := make([]string, c.rows)
	for i := range refs {
		out[i] = string(refs[i].bytes())
	}
	return out
}

// refs returns the strings of a column where they are.
func (c chunk) refs(col int) []stringRef {
	v := bindings.DataChunkGetVector(c.dc, bindings.IdxT(col))
	return unsafe.Slice((*stringRef)(bindings.VectorGetData(v)), c.rows)
}

// errInvalidated means that DuckDB answers nothing more until the file is opened
// again: so it does when it cannot move its write-ahead log into the file, mostly
// for want of space. Nothing that was committed is lost.
var errInvalidated = errors.New("history must be opened again")

// failure is the error of what DuckDB says.
func failure(message string) error {
	switch {
	case strings.Contains(message, "database has been invalidated"):
		return fmt.Errorf("%w: %w: duckdb: %s", query.ErrUnavailable, errInvalidated, message)
	case strings.Contains(message, "No space left on device"):
		return fmt.Errorf("%w: duckdb: %s", query.ErrUnavailable, message)
	}
	return fmt.Errorf("duckdb: %s", message)
}
