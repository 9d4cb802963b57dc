package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

// Limits bound what one request may carry. A zero field means its default.
type Limits struct {
	// Events is the largest number of events in a batch; default 10,000.
	Events int
	// Depth is how deep an event's JSON may nest, the event itself being level
	// 1; default 32. Members that are ignored do not count.
	Depth int
	// TypeBytes is the longest event_type; default 128.
	TypeBytes int
	// IdentifierBytes is the longest email, external_id or phone; default 512.
	IdentifierBytes int
	// NameBytes is the longest first_name or last_name; default 512.
	NameBytes int
	// KeyBytes is the longest idempotency_key; default 256.
	KeyBytes int
	// ObjectBytes is the largest geo, attributes or properties, each counted in
	// canonical text; default 65,536.
	ObjectBytes int
}

func (l Limits) withDefaults() Limits {
	l.Events = cmp.Or(l.Events, 10_000)
	l.Depth = cmp.Or(l.Depth, 32)
	l.TypeBytes = cmp.Or(l.TypeBytes, 128)
	l.IdentifierBytes = cmp.Or(l.IdentifierBytes, 512)
	l.NameBytes = cmp.Or(l.NameBytes, 512)
	l.KeyBytes = cmp.Or(l.KeyBytes, 256)
	l.ObjectBytes = cmp.Or(l.ObjectBytes, 64<<10)
	return l
}

func (l *Limits) validate() error {
	for _, f := range []struct {
		name  string
		value int
		low   int
	}{
		{"Events", l.Events, 1},
		{"Depth", l.Depth, 3}, // event, user, attributes
		{"TypeBytes", l.TypeBytes, 1},
		{"IdentifierBytes", l.IdentifierBytes, 1},
		{"NameBytes", l.NameBytes, 1},
		{"KeyBytes", l.KeyBytes, 1},
		{"ObjectBytes", l.ObjectBytes, 2},
	} {
		if f.value < f.low {
			return fmt.Errorf("ingest: Limits.%s is %d; it must be at least %d", f.name, f.value, f.low)
		}
	}
	return nil
}

// Options configure a [Handler] and its server. Now and Rand are required; a
// zero value elsewhere means the default.
type Options struct {
	Limits Limits
	// BodyBytes is the longest body, before and after decompression; default
	// 8 MiB.
	BodyBytes int
	// DrainBytes is how much of a refused body is read and thrown away, within
	// DrainTime, so that the client gets to read the answer, before the connection
	// is closed; defaults 64 MiB and 10 s.
	DrainBytes int
	DrainTime  time.Duration
	// RecordBytes is the log's limit of one record; default 16 MiB.
	RecordBytes int
	// InFlightBytes bounds the memory of the bodies and records of all requests
	// under way; default 256 MiB.
	InFlightBytes int64
	// Memory is shared with the handlers beside this one; nil makes one of
	// InFlightBytes.
	Memory *Memory
	// Timeout bounds the wait for a record to be applied; default 30 s.
	Timeout time.Duration
	// RetryAfter is what an overloaded server asks clients to wait, in whole
	// seconds; default 1 s.
	RetryAfter time.Duration

	// Now is the wall clock. It must be safe for concurrent use.
	Now func() time.Time
	// Rand is the source of record ids: crypto/rand.Reader outside of tests. It
	// need not be safe for concurrent use.
	Rand io.Reader
	// Metrics takes the counters; nil keeps them to the handler.
	Metrics *metrics.Set
	// Logger takes faults of the server itself; nil is silent.
	Logger *slog.Logger

	// Current makes sure that what is known of an account is not out of date where
	// several nodes answer for accounts: exactly means as of now, else as of a moment
	// ago. An error says that it cannot be, as when another node answers for the
	// account by now. It bounds its own time. Nil means that what is known is always
	// current.
	Current func(ctx context.Context, account uint64, exactly bool) error

	// Refuse answers what is not a proper HTTP request in the form of the path it asks
	// for, which may be unknown; nil answers all in Surface B's.
	Refuse func(ctx *fasthttp.RequestCtx, path string, status int, text string)

	ServerOptions
}

// ServerOptions configure the HTTP server in front of a handler: its connections, the
// heads of requests, and how long clients may take.
type ServerOptions struct {
	// ServerName is sent in the Server header; default "muster".
	ServerName string
	// HeaderBytes is the longest head of a request; default 8 KiB. Each
	// connection holds a buffer of this size and HeaderRoom.
	HeaderBytes int
	// Internal reports whether a call is another node's, whose heads may be longer
	// by HeaderRoom bytes: they hold those of clients. Nil means there are none.
	Internal   func(ctx *fasthttp.RequestCtx) bool
	HeaderRoom int
	// Connections is the largest number of connections; default 16,384.
	Connections int
	// AddressConnections is the largest number of connections from one address, or
	// /64 network, that no request has been authenticated on; default a quarter of
	// Connections, at most 1,024. See [Authenticated].
	AddressConnections int
	// Uncounted reports whether AddressConnections does not hold for an address,
	// such as those of proxies, beside loopback's. Nil means that there are none.
	Uncounted func(netip.Addr) bool
	// HeadTimeout bounds reading the head of a request and the first 8 KiB of its
	// body, from its first byte, or from when the connection was accepted; default
	// 10 s.
	HeadTimeout time.Duration
	// ReadTimeout is the longest that a body may take to come, whatever its size;
	// default 60 s.
	ReadTimeout time.Duration
	// WriteTimeout bounds writing an answer; default 30 s.
	WriteTimeout time.Duration
	// IdleTimeout bounds the pause between requests of a connection; default
	// 120 s.
	IdleTimeout time.Duration
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	o.BodyBytes = cmp.Or(o.BodyBytes, 8<<20)
	o.DrainBytes = cmp.Or(o.DrainBytes, 64<<20)
	o.DrainTime = cmp.Or(o.DrainTime, 10*time.Second)
	o.RecordBytes = cmp.Or(o.RecordBytes, 16<<20)
	o.InFlightBytes = cmp.Or(o.InFlightBytes, 256<<20)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.RetryAfter = cmp.Or(o.RetryAfter, time.Second)
	o.ServerName = cmp.Or(o.ServerName, "muster")
	o.HeaderBytes = cmp.Or(o.HeaderBytes, 8<<10)
	o.Connections = cmp.Or(o.Connections, 16<<10)
	o.AddressConnections = addressConnections(o.AddressConnections, o.Connections)
	o.Uncounted = uncounted(o.Uncounted)
	o.HeadTimeout = cmp.Or(o.HeadTimeout, 10*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 60*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 120*time.Second)
	if o.Refuse == nil {
		o.Refuse = func(ctx *fasthttp.RequestCtx, _ string, status int, text string) { Refuse(ctx, status, text) }
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) validate() error {
	if err := o.Limits.validate(); err != nil {
		return err
	}
	switch {
	case o.Now == nil:
		return errors.New("ingest: Options.Now is nil; pass the wall clock, such as time.Now")
	case o.Rand == nil:
		return errors.New("ingest: Options.Rand is nil; pass a source of randomness, such as crypto/rand.Reader")
	case o.BodyBytes < 1024 || o.BodyBytes > MaxBodyBytes:
		return fmt.Errorf("ingest: Options.BodyBytes is %d; it must be from 1024 to %d bytes", o.BodyBytes, MaxBodyBytes)
	case o.RecordBytes < o.BodyBytes+recordHead:
		// An encoded event is shorter than its JSON, so that this is enough.
		return fmt.Errorf("ingest: Options.RecordBytes is %d; it must be at least BodyBytes + %d = %d bytes, or a body could make a record the log refuses",
			o.RecordBytes, recordHead, o.BodyBytes+recordHead)
	case o.InFlightBytes < 4*int64(o.BodyBytes):
		return fmt.Errorf("ingest: Options.InFlightBytes is %d; it must be at least 4 × BodyBytes = %d bytes, the most one request takes", o.InFlightBytes, 4*int64(o.BodyBytes))
	case o.HeaderRoom < 0:
		return fmt.Errorf("ingest: Options.HeaderRoom is %d; it must not be negative", o.HeaderRoom)
	case o.Connections < 1 || o.AddressConnections < 1:
		return fmt.Errorf("ingest: Options.Connections is %d and AddressConnections %d; each must be at least 1", o.Connections, o.AddressConnections)
	case o.DrainBytes < 0:
		return fmt.Errorf("ingest: Options.DrainBytes is %d; it must not be negative", o.DrainBytes)
	case o.Timeout < 0 || o.DrainTime < 0 || o.RetryAfter < 0 || o.HeadTimeout < 0 || o.ReadTimeout < 0 || o.WriteTimeout < 0 || o.IdleTimeout < 0:
		return errors.New("ingest: a timeout in Options is negative; use 0 for its default")
	}
	return nil
}

const (
	// MaxBodyBytes is the greatest Options.BodyBytes: positions in a body stay within
	// what the scanner addresses.
	MaxBodyBytes = 512 << 20
	// recordHead is at least the length of a record before its events.
	recordHead = 128
)
