package trackingapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/resolver/sources"
)

// Node is what the handler needs of the state machine.
type Node interface {
	ingest.Submitter
	// WriteKey finds a write key that holds by its SHA-256.
	WriteKey(account uint64, hash [32]byte) (sources.Access, bool)
	// NoteRefusedCall shows an event that was refused to people who watch; call is "" where
	// it is not known.
	NoteRefusedCall(source *sources.Access, call string, raw []byte, reason string)
	// Command runs a command of an account.
	Command(ctx context.Context, account uint64, name string, args any) ([]byte, error)
	// RecordSourceUses records when write keys were used.
	RecordSourceUses(ctx context.Context, uses []sources.Use) error
}

// Options configure a [Handler]. Node, Memory, Now and Rand are required; a zero value
// elsewhere means the default.
type Options struct {
	Node Node
	// Memory is what bodies and records are taken from.
	Memory *ingest.Memory
	// Now is the wall clock, Rand the source of record ids. Now must be safe for concurrent
	// use.
	Now  func() time.Time
	Rand io.Reader
	// Limits are those of one event; see [ingest.Limits].
	Limits ingest.Limits
	// BodyBytes is the longest body, before and after decompression; default 8 MiB.
	BodyBytes int
	// RecordBytes is the log's limit of one record; default 16 MiB.
	RecordBytes int
	// Timeout bounds the wait for a record to be applied; default 30 s.
	Timeout time.Duration
	// RetryAfter is what an overloaded server asks clients to wait; default 1 s, at most
	// 300 s.
	RetryAfter time.Duration
	// FlushInterval is how often the use of write keys is recorded; default 1 minute.
	FlushInterval time.Duration
	// Current makes sure that what is known of an account is not out of date; see
	// [ingest.Options].
	Current func(ctx context.Context, account uint64, exactly bool) error
	// Metrics takes the counters; nil keeps them to the handler.
	Metrics *metrics.Set
	// Logger takes faults of the service itself; nil is silent.
	Logger *slog.Logger
	// Secure reports whether a request came, or came to a proxy before the service, by TLS;
	// nil goes by the connection and X-Forwarded-Proto.
	Secure func(ctx *fasthttp.RequestCtx) bool
}

// The bounds of what comes under a browser's key, in bytes: those that Segment's SDKs keep.
const (
	publicEventBytes = 32 << 10
	publicBatchBytes = 500 << 10
	publicEvents     = 2500
	// maxRetryAfter is the longest pause that SDKs keep.
	maxRetryAfter = 300 * time.Second
	// maxRejected is how many events that were refused an answer names.
	maxRejected = 1000
	// maxShown is how many of them people who watch are shown.
	maxShown = 100
)

func (o Options) withDefaults() (Options, error) {
	o.BodyBytes = cmp.Or(o.BodyBytes, 8<<20)
	o.RecordBytes = cmp.Or(o.RecordBytes, 16<<20)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.RetryAfter = cmp.Or(o.RetryAfter, time.Second)
	o.FlushInterval = cmp.Or(o.FlushInterval, time.Minute)
	o.Limits.Events = cmp.Or(o.Limits.Events, 10_000)
	o.Limits.Depth = cmp.Or(o.Limits.Depth, 32)
	o.Limits.IdentifierBytes = cmp.Or(o.Limits.IdentifierBytes, 512)
	o.Limits.NameBytes = cmp.Or(o.Limits.NameBytes, 512)
	o.Limits.ObjectBytes = cmp.Or(o.Limits.ObjectBytes, 64<<10)
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Secure == nil {
		o.Secure = func(ctx *fasthttp.RequestCtx) bool {
			return ctx.IsTLS() || string(ctx.Request.Header.Peek(fasthttp.HeaderXForwardedProto)) == "https"
		}
	}
	switch {
	case o.Node == nil:
		return o, errors.New("trackingapi: Options.Node is nil; pass the node")
	case o.Memory == nil:
		return o, errors.New("trackingapi: Options.Memory is nil; pass the memory that all surfaces share")
	case o.Now == nil || o.Rand == nil:
		return o, errors.New("trackingapi: Options.Now or Rand is nil; pass time.Now and crypto/rand.Reader")
	case o.RetryAfter < 0 || o.RetryAfter > maxRetryAfter:
		return o, fmt.Errorf("trackingapi: Options.RetryAfter is %v; it must be at most %v, which is the longest that SDKs wait", o.RetryAfter, maxRetryAfter)
	case o.BodyBytes < 1024 || o.BodyBytes > ingest.MaxBodyBytes:
		return o, fmt.Errorf("trackingapi: Options.BodyBytes is %d; it must be from 1024 to %d bytes", o.BodyBytes, ingest.MaxBodyBytes)
	case o.Limits.Depth < 3:
		return o, fmt.Errorf("trackingapi: Options.Limits.Depth is %d; it must be at least 3", o.Limits.Depth)
	}
	return o, nil
}
