package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/musterhq/muster/query"
)

// ErrUnavailable reports that ClickHouse cannot be asked at present; it may be
// asked again.
var ErrUnavailable = query.ErrUnavailable

// ErrClosed reports that the store has been closed.
var ErrClosed = errors.New("history is closed")

// ErrNewerSchema reports that the tables were made by a newer version.
var ErrNewerSchema = errors.New("history was written by a newer version")

// errQuiet is why a query was given up.
var errQuiet = errors.New("ClickHouse does not answer")

// passing are the codes of a server's errors that are none of the question's:
// https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp
var passing = map[int32]bool{
	60:  true, // UNKNOWN_TABLE: it is made again
	81:  true, // UNKNOWN_DATABASE: the same
	159: true, // TIMEOUT_EXCEEDED
	160: true, // TOO_SLOW
	164: true, // READONLY
	173: true, // CANNOT_ALLOCATE_MEMORY
	202: true, // TOO_MANY_SIMULTANEOUS_QUERIES
	203: true, // NO_FREE_CONNECTION
	209: true, // SOCKET_TIMEOUT
	210: true, // NETWORK_ERROR
	236: true, // ABORTED
	241: true, // MEMORY_LIMIT_EXCEEDED
	242: true, // TABLE_IS_READ_ONLY
	243: true, // NOT_ENOUGH_SPACE
	252: true, // TOO_MANY_PARTS
	394: true, // QUERY_WAS_CANCELLED
	395: true, // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: a commit that came too late, or was overtaken; a table made again
	439: true, // CANNOT_SCHEDULE_TASK
	516: true, // AUTHENTICATION_FAILED
}

// classify wraps what ClickHouse or the way to it failed at. An error of the
// caller's own context stays one.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errQuiet) {
		return fmt.Errorf("%w: %w", ErrUnavailable, errQuiet)
	}
	if e := ctx.Err(); e != nil && !errors.Is(err, e) {
		err = fmt.Errorf("%w: %w", e, err)
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	var refused *clickhouse.Exception
	if errors.As(err, &refused) && !passing[refused.Code] {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// textOvertaken is what the server says of a commit that another one overtook.
const textOvertaken = "the records were stored by another writer meanwhile"

// textRemade is what the server says when a table was made again meanwhile.
const textRemade = "a table of history was made again meanwhile"

// errTablesGone reports that some tables are not there.
var errTablesGone = errors.New("a table of history is not there")

// errCoverChanged reports that other writers' rows count than a moment before.
var errCoverChanged = errors.New("history was begun anew meanwhile")

// overtaken reports whether an append was refused because others have stored its
// records, or the first of them, meanwhile, or because a table was made again.
func overtaken(err error) bool {
	var refused *clickhouse.Exception
	return errors.As(err, &refused) && (strings.Contains(refused.Message, textOvertaken) || strings.Contains(refused.Message, textRemade))
}

// gone reports whether an error tells that a database, table or column is not there, or is
// another one than before.
func gone(err error) bool {
	var refused *clickhouse.Exception
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case 16, 47, 60, 81: // NO_SUCH_COLUMN_IN_TABLE, UNKNOWN_IDENTIFIER, UNKNOWN_TABLE, UNKNOWN_DATABASE
		return true
	}
	return strings.Contains(refused.Message, textRemade)
}

// lost reports whether an error is that of a connection that was there and broke,
// as against one of the server or of connecting to it.
func lost(err error) bool {
	var refused *clickhouse.Exception
	var op *net.OpError
	if errors.As(err, &refused) || errors.As(err, &op) && op.Op == "dial" {
		return false
	}
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}
