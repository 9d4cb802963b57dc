package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/segmentio/kafka-go/sasl"
)

// Defaults of [Options].
const (
	DefaultSessionTimeout    = 6 * time.Second // what brokers allow by default
	DefaultHeartbeatInterval = 500 * time.Millisecond
	DefaultJoinTimeout       = 30 * time.Second // and two sessions
)

// Options configure a member. The zero value of a field means its default.
type Options struct {
	// Brokers are addresses to begin with, HOST:PORT. At least one.
	Brokers []string
	// Topic is the log's, and Partitions how many it has.
	Topic      string
	Partitions int
	// Node is this node. Its ID must be that of no other process that runs.
	Node Node
	// Self is a URL that this process answers with 204 No Content, and no other process
	// does, such as one with a random path. [Join] asks it of a member that has this
	// node's id, before it takes its place. Without one a member is taken for dead.
	Self string
	// Key is what nodes share that own partitions beside each other, at most 64
	// bytes; every user of Kafka can read it. Without one the node owns them all,
	// or none.
	Key string
	// TLS encrypts connections and SASL authenticates them when they are set.
	TLS  *tls.Config
	SASL sasl.Mechanism
	// SessionTimeout is how long Kafka waits for a sign of life before it takes
	// a node for dead; the brokers bound it (group.min.session.timeout.ms, 6 s
	// by default). HeartbeatInterval is the time between two such signs.
	SessionTimeout, HeartbeatInterval time.Duration
	// JoinTimeout bounds [Join].
	JoinTimeout time.Duration
	// Logger receives a line when Kafka is away and back; nil is silent.
	Logger *slog.Logger
	// Now is the clock for a claim's time; time.Now when nil.
	Now func() time.Time

	// dial makes connections to Kafka; a net.Dialer when nil. Tests cut them.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// knock reports whether a node's address has a listener; [knock] when nil.
	knock func(ctx context.Context, address string) error
	// answers reports whether a process answers at its Self; [answers] when nil.
	answers func(ctx context.Context, self string) bool
}

func (o Options) withDefaults() (Options, error) {
	o.SessionTimeout = cmp.Or(o.SessionTimeout, DefaultSessionTimeout)
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, min(DefaultHeartbeatInterval, o.SessionTimeout/4))
	o.JoinTimeout = cmp.Or(o.JoinTimeout, DefaultJoinTimeout+2*o.SessionTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.dial == nil {
		o.dial = (&net.Dialer{Timeout: requestTimeout}).DialContext
	}
	if o.knock == nil {
		o.knock = knock
	}
	if o.answers == nil {
		o.answers = answers
	}
	switch {
	case o.SessionTimeout < time.Second:
		return o, fmt.Errorf("cluster: SessionTimeout is %v, must be at least 1 s", o.SessionTimeout)
	case len(o.Brokers) == 0 || o.Topic == "" || o.Partitions < 1 || o.Node.ID == "":
		return o, errors.New("cluster: Brokers, Topic, Partitions and Node.ID must be set")
	case len(o.Key) > 64:
		return o, fmt.Errorf("cluster: Key has %d bytes, must have at most 64", len(o.Key))
	case o.JoinTimeout < time.Second:
		return o, fmt.Errorf("cluster: JoinTimeout is %v, must be at least 1 s", o.JoinTimeout)
	case o.HeartbeatInterval <= 0 || o.HeartbeatInterval > o.SessionTimeout/3:
		return o, fmt.Errorf("cluster: HeartbeatInterval is %v, must be positive and at most a third of SessionTimeout, %v", o.HeartbeatInterval, o.SessionTimeout)
	}
	return o, nil
}

// Group is the consumer group of a topic.
func Group(topic string) string { return "muster-" + topic }
