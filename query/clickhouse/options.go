package clickhouse

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Options say where ClickHouse is and bound what is asked of it.
type Options struct {
	// DSN is clickhouse://USER:PASSWORD@HOST:PORT/DATABASE?secure=true&…, of the
	// native protocol. It names one host.
	DSN string
	// Database has the tables; it is created when it is not there. Default: that
	// of the DSN, else muster.
	Database string
	// DialTimeout bounds connecting, the handshake included. Default: that of the
	// DSN, else 3 s.
	DialTimeout time.Duration
	// QuietTimeout is how long a server that is asked may say nothing at all; one
	// that works says so ten times a second. Default 15 s.
	QuietTimeout time.Duration
	// QueryTimeout bounds a question, AppendTimeout an append. Default 2 min and
	// 1 min. A replay is bounded by piece, each 10 min.
	QueryTimeout, AppendTimeout time.Duration
	// MemoryBytes bounds what one query takes on the server; from half of it on
	// groups spill to disk there. Default 2 GB, at least 64 MB.
	MemoryBytes int64
	// Threads bounds the threads of one query on the server. Default 0: what the
	// server has as its own default.
	Threads int
	// TTLDays is after how many days events go, by their own time. Default 0:
	// never. Conditions over a longer time count what is left when they are
	// built from history.
	TTLDays int
	// Readers, Replays and Writers bound the connections for questions, replays
	// and appends; more wait for their turn. Default 4, 2 and 4.
	Readers, Replays, Writers int
	// SweepEvery is how often garbage and what was erased is removed from disk,
	// at least 30 minutes. Default 1 h.
	SweepEvery time.Duration
	// Owner names the log whose history this is. The first one to open a database
	// makes it its own; another gets [ErrOtherOwner]. Empty asks nothing.
	Owner string
	// Rand draws writers' numbers. Default crypto/rand.
	Rand io.Reader
	// Logger receives the results of the sweep; nil is silent.
	Logger *slog.Logger
}

const (
	mb = 1_000_000
	gb = 1_000_000_000
	// pieceTimeout bounds one statement of a replay, its reader's time included.
	pieceTimeout = 10 * time.Minute
	// commitFence is how long after an append began its commit is taken, by the
	// server's clock. The sweep relies on it.
	commitFence = 10 * time.Minute
	// leastSweepEvery leaves time for whatever was under way: a fence, a piece, a
	// cover that is remembered.
	leastSweepEvery = 30 * time.Minute
	// maxTTLDays keeps a time and its TTL within 32 bits of seconds.
	maxTTLDays = 7300
	// coverAge is how long a cover is used without reading commits again.
	coverAge = 5 * time.Minute
)

// resolve fills in the defaults and reads the DSN.
func (o Options) resolve() (Options, *clickhouse.Options, error) {
	if o.DSN == "" {
		return o, nil, errors.New("DSN is empty, name a server: clickhouse://HOST:9000/muster")
	}
	co, err := clickhouse.ParseDSN(o.DSN)
	if err != nil {
		// The text may hold a password.
		return o, nil, errors.New("DSN cannot be read, expected clickhouse://USER:PASSWORD@HOST:PORT/DATABASE?secure=true")
	}
	if co.Protocol != clickhouse.Native {
		return o, nil, errors.New("DSN is of the HTTP protocol, name the native one: clickhouse://HOST:9000 (or 9440 with ?secure=true)")
	}
	if len(co.Addr) != 1 {
		return o, nil, fmt.Errorf("DSN names %d hosts, must name one: a reader must see what was written just before", len(co.Addr))
	}
	o.Database = cmp.Or(o.Database, co.Auth.Database, "muster")
	o.DialTimeout = cmp.Or(o.DialTimeout, co.DialTimeout, 3*time.Second)
	o.QuietTimeout = cmp.Or(o.QuietTimeout, 15*time.Second)
	o.QueryTimeout = cmp.Or(o.QueryTimeout, 2*time.Minute)
	o.AppendTimeout = cmp.Or(o.AppendTimeout, time.Minute)
	o.MemoryBytes = cmp.Or(o.MemoryBytes, 2*gb)
	o.Readers, o.Replays, o.Writers = cmp.Or(o.Readers, 4), cmp.Or(o.Replays, 2), cmp.Or(o.Writers, 4)
	o.SweepEvery = cmp.Or(o.SweepEvery, time.Hour)
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.validate(); err != nil {
		return o, nil, err
	}
	co.DialTimeout = o.DialTimeout
	co.ReadTimeout = pieceTimeout + time.Minute // contexts end earlier
	co.MaxOpenConns = o.Readers + o.Replays + o.Writers
	co.MaxIdleConns = co.MaxOpenConns
	co.BlockBufferSize = 2
	if co.Compression == nil {
		co.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	co.Settings = o.settings(co.Settings)
	return o, co, nil
}

func (o Options) validate() error {
	var errs []error
	atLeast := func(name string, have, least int64) {
		if have < least {
			errs = append(errs, fmt.Errorf("%s is %d, must be at least %d", name, have, least))
		}
	}
	for _, d := range []struct {
		name        string
		have, least time.Duration
	}{
		{"DialTimeout", o.DialTimeout, time.Millisecond}, {"QuietTimeout", o.QuietTimeout, 100 * time.Millisecond},
		{"QueryTimeout", o.QueryTimeout, time.Millisecond}, {"AppendTimeout", o.AppendTimeout, time.Millisecond},
		{"SweepEvery", o.SweepEvery, leastSweepEvery},
	} {
		if d.have < d.least {
			errs = append(errs, fmt.Errorf("%s is %v, must be at least %v", d.name, d.have, d.least))
		}
	}
	if o.AppendTimeout > commitFence/2 {
		errs = append(errs, fmt.Errorf("AppendTimeout is %v, must be at most %v", o.AppendTimeout, commitFence/2))
	}
	if o.QueryTimeout > pieceTimeout {
		errs = append(errs, fmt.Errorf("QueryTimeout is %v, must be at most %v", o.QueryTimeout, pieceTimeout))
	}
	atLeast("MemoryBytes", o.MemoryBytes, 64*mb)
	atLeast("Threads", int64(o.Threads), 0)
	atLeast("TTLDays", int64(o.TTLDays), 0)
	if o.TTLDays > maxTTLDays {
		errs = append(errs, fmt.Errorf("TTLDays is %d, must be at most %d", o.TTLDays, maxTTLDays))
	}
	atLeast("Readers", int64(o.Readers), 1)
	atLeast("Replays", int64(o.Replays), 1)
	atLeast("Writers", int64(o.Writers), 1)
	return errors.Join(errs...)
}

// settings are those of every query: what the dialect relies on, and bounds.
// They go over what a server's profile says.
func (o Options) settings(more clickhouse.Settings) clickhouse.Settings {
	s := clickhouse.Settings{
		"join_use_nulls":                1,
		"prefer_column_name_to_alias":   1,
		"precise_float_parsing":         1,
		"transform_null_in":             0,
		"allow_simdjson":                1,
		"count_distinct_implementation": "uniqExact",
		"session_timezone":              "UTC",
		// Statements with long lists of values are long.
		"max_query_size":            16 << 20,
		"max_ast_elements":          1_000_000,
		"max_expanded_ast_elements": 1_000_000,
		// Machine code for statements that differ each time is dearer than it is worth.
		"compile_expressions":                0,
		"compile_aggregate_expressions":      0,
		"max_memory_usage":                   o.MemoryBytes,
		"max_bytes_before_external_group_by": o.MemoryBytes / 2,
		"max_bytes_before_external_sort":     o.MemoryBytes / 2,
		"async_insert":                       0,
		"insert_deduplicate":                 1,
		"mutations_sync":                     2,
		"lightweight_deletes_sync":           2,
		// A replay's reader may take its time.
		"send_timeout":      int(pieceTimeout.Seconds()),
		"receive_timeout":   int(pieceTimeout.Seconds()),
		"interactive_delay": 100_000,
	}
	if o.Threads > 0 {
		s["max_threads"] = o.Threads
	}
	for k, v := range more {
		if _, ours := s[k]; !ours {
			s[k] = v
		}
	}
	return s
}
