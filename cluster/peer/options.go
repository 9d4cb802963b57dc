package peer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/ingest"
)

// Prefix begins the path of every call between nodes.
const Prefix = "/cluster/v1/"

// The calls, behind Prefix.
const (
	forwardPath = Prefix + "forward" // and the client's own path
	commandPath = Prefix + "command/"
	askPath     = Prefix + "ask/"
)

// Table says who owns which partition: a [*cluster.Member].
type Table interface {
	Owner(partition int) (cluster.Node, bool)
	// Nodes are all that live.
	Nodes() []cluster.Node
	// Changed is closed when something else is true than at the call.
	Changed() <-chan struct{}
	// Refresh has it found out again, in a moment.
	Refresh()
}

// Node is this node's state: a *node.Node of package resolver/node.
type Node interface {
	Partitions() int
	// Owns reports whether the partition is loaded and answers here; Changed is
	// closed when that changed for some.
	Owns(partition int) bool
	Changed() <-chan struct{}
	// SubmitCommand carries out a record that another node made.
	SubmitCommand(ctx context.Context, partition int, record []byte) (reply []byte, err error)
}

// Options configure [Peers]. Secret, Table, Self, Memory, Now and Rand are required.
type Options struct {
	Secret Secret
	Table  Table
	// Self is this node's id.
	Self string
	// Memory is what bodies of calls are taken from, that of the service.
	Memory *ingest.Memory
	// BodyBytes is the longest body of a client's request, RecordBytes that of a
	// record; defaults 8 MiB and 16 MiB.
	BodyBytes, RecordBytes int
	// Wait is how long a call waits for an owner that is not known, not there or
	// still loading; default 10 s.
	Wait time.Duration
	// Grace is how long a node that has left the cluster may still answer the
	// requests that it has; default 2 s.
	Grace time.Duration
	// CallTimeout bounds a command or a question whose caller gives no bound;
	// default 30 s.
	CallTimeout time.Duration
	// TLS returns how a node at a host is called over TLS; nil where nodes speak plain
	// HTTP. All nodes of a cluster do the same.
	TLS func(host string) *tls.Config
	// Connections is how many there may be to each node; default 4,096.
	Connections int
	// Now is the wall clock.
	Now func() time.Time
	// Rand is where this process has its name from: crypto/rand.Reader outside of
	// tests.
	Rand    io.Reader
	Metrics *metrics.Set // nil keeps them to the package
	Logger  *slog.Logger // nil is silent
}

func (o Options) withDefaults() (Options, error) {
	if o.Table == nil || o.Memory == nil || o.Now == nil || o.Rand == nil || o.Self == "" || o.Secret.IsZero() {
		return o, errors.New("peer: Secret, Table, Self, Memory, Now and Rand must be set")
	}
	o.BodyBytes = cmp.Or(o.BodyBytes, 8<<20)
	o.RecordBytes = cmp.Or(o.RecordBytes, 16<<20)
	o.Wait = cmp.Or(o.Wait, 10*time.Second)
	o.Grace = cmp.Or(o.Grace, 2*time.Second)
	o.CallTimeout = cmp.Or(o.CallTimeout, 30*time.Second)
	o.Connections = cmp.Or(o.Connections, 4096)
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.BodyBytes < 0 || o.RecordBytes < 0 || o.Wait < 0 || o.Grace < 0 || o.CallTimeout < 0 || o.Connections < 0 {
		return o, errors.New("peer: bounds must not be negative")
	}
	return o, nil
}
