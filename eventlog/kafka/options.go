package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// Defaults of [Options].
const (
	DefaultTopic          = "muster"
	DefaultPartitions     = 1
	DefaultMinRetention   = 7 * 24 * time.Hour
	DefaultMaxRecordBytes = 16 << 20
	DefaultQueueBytes     = 64 << 20
	DefaultQueueRecords   = 1 << 16
	DefaultFetchBytes     = 4 << 20
	DefaultOwnBytes       = 8 << 20
	DefaultMaxInFlight    = 3
	DefaultClientID       = "muster"
	DefaultDialTimeout    = 3 * time.Second
	DefaultRequestTimeout = 10 * time.Second
	DefaultAppendTimeout  = 30 * time.Second
	DefaultCloseTimeout   = 10 * time.Second
)

const (
	maxPartitions = 4096
	// MostRecordBytes is the greatest Options.MaxRecordBytes. It keeps a produce request below Kafka's largest
	// (socket.request.max.bytes, 100 MiB).
	MostRecordBytes = 64 << 20
	maxFetchBytes   = 256 << 20
	// keepForever is Kafka's word for no bound on a retention.
	keepForever = -1
)

// Options configure a log. The zero value of a field means its default.
type Options struct {
	// Brokers are addresses to begin with, HOST:PORT; the rest of the cluster
	// is learnt from them. At least one.
	Brokers []string
	TopicOptions
	Limits
	Timeouts
	// Compression of batches: none (the default), lz4, zstd, snappy or gzip.
	Compression string
	// TLS encrypts connections when it is set.
	TLS *tls.Config
	// SASL authenticates connections when it is set.
	SASL *SASL
	// ClientID names this client in Kafka's logs and quotas.
	ClientID string
	// Logger receives start-up lines and what went wrong with brokers; nil
	// means silent.
	Logger *slog.Logger
	// OnProduce receives how long each acknowledged produce request took. It is
	// called by the partition's senders and must not block.
	OnProduce func(partition int, took time.Duration)
	// Now is the clock for OnProduce, Stats and the age of what waits;
	// time.Now when nil.
	Now func() time.Time

	// dial makes connections; a net.Dialer when nil. Tests cut them.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// TopicOptions say what the log's topic must be like: it is created so, and one that
// exists is refused when it is not so.
type TopicOptions struct {
	// Topic holds the log. It is created when there is none.
	Topic string
	// Known says that the topic was there before: it is not created.
	Known bool
	// Partitions is the number the topic is created with; a topic that exists
	// must have it. 0 takes the topic as it is and creates it with
	// DefaultPartitions.
	Partitions int
	// NewPartitions is what a topic is created with while Partitions is 0.
	NewPartitions int
	// Replication is the number of replicas the topic is created with, and the
	// least that one that exists must have. 0 means 3, or the number of brokers
	// when there are fewer.
	Replication int
	// MinInsync is the same for min.insync.replicas; 0 means more than half of
	// the replicas: any one of three brokers may fail and nothing acknowledged
	// is lost.
	MinInsync int
	// MinRetention is the least retention.ms that will do. It must cover the
	// age of the oldest checkpoint, or a start has nothing to replay from. A
	// topic is created without a bound.
	MinRetention time.Duration
	// MinRetentionBytes is the least retention.bytes that will do. 0 means that
	// retention.bytes may not be set: with it no time is sure for which records
	// stay.
	MinRetentionBytes int64
	// Base is what is known of the offset that the topic's records count from, see
	// [Log.Begin]: needed when retention has taken all of a partition, and
	// compared otherwise. nil: nothing is known.
	Base *int64
}

// Limits bound the records, and what is kept of them in memory.
type Limits struct {
	// MaxRecordBytes is the largest record Append takes.
	MaxRecordBytes int
	// QueueBytes bounds the records of a partition that are not acknowledged
	// yet. It counts their bytes with up to 32 bytes of framing each.
	QueueBytes int64
	// QueueRecords bounds the same records by number.
	QueueRecords int
	// MaxInFlight bounds the produce requests of a partition that are under way
	// at once.
	MaxInFlight int
	// FetchBytes is what a reader asks for at once. A reader holds that much,
	// or one batch when that is larger.
	FetchBytes int
	// OwnBytes bounds what of a partition's own batches is kept until its reader
	// comes to them, so that they need not be fetched; see the package
	// documentation.
	OwnBytes int64
}

// Timeouts bound what waits for brokers.
type Timeouts struct {
	// DialTimeout bounds making a connection, authentication included.
	DialTimeout time.Duration
	// RequestTimeout bounds one request; half of it is what Kafka may take for
	// replication.
	RequestTimeout time.Duration
	// AppendTimeout bounds an append with all its repetitions. It must be so
	// short that the state still knows the record when the last repetition is
	// read, see the package documentation.
	AppendTimeout time.Duration
	// CloseTimeout bounds how long Close waits for appends under way.
	CloseTimeout time.Duration
}

// SASL names a user to Kafka.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. PLAIN sends the
	// password as it is; use it with TLS.
	Mechanism          string
	Username, Password string
}

func (s *SASL) mechanism() (sasl.Mechanism, error) {
	if s == nil {
		return nil, nil
	}
	if s.Username == "" || s.Password == "" {
		return nil, errors.New("SASL needs a user name and a password")
	}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Mechanism{Username: s.Username, Password: s.Password}, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, s.Username, s.Password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, s.Username, s.Password)
	}
	return nil, fmt.Errorf("SASL.Mechanism is %q, must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", s.Mechanism)
}

// codec returns what compresses batches, nil for none.
func (o Options) codec() (compress.Codec, error) {
	switch o.Compression {
	case "", "none":
		return nil, nil
	case "lz4":
		return &compress.Lz4Codec, nil
	case "zstd":
		return &compress.ZstdCodec, nil
	case "snappy":
		return &compress.SnappyCodec, nil
	case "gzip":
		return &compress.GzipCodec, nil
	}
	return nil, fmt.Errorf("option Compression is %q, must be none, lz4, zstd, snappy or gzip", o.Compression)
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (o Options) withDefaults() Options {
	orDefault(&o.Topic, DefaultTopic)
	orDefault(&o.MinRetention, DefaultMinRetention)
	orDefault(&o.MaxRecordBytes, DefaultMaxRecordBytes)
	orDefault(&o.QueueBytes, max(DefaultQueueBytes, int64(o.MaxRecordBytes)+maxFraming))
	orDefault(&o.QueueRecords, DefaultQueueRecords)
	orDefault(&o.MaxInFlight, DefaultMaxInFlight)
	orDefault(&o.FetchBytes, DefaultFetchBytes)
	orDefault(&o.OwnBytes, DefaultOwnBytes)
	orDefault(&o.ClientID, DefaultClientID)
	orDefault(&o.DialTimeout, DefaultDialTimeout)
	orDefault(&o.RequestTimeout, DefaultRequestTimeout)
	orDefault(&o.AppendTimeout, DefaultAppendTimeout)
	orDefault(&o.CloseTimeout, DefaultCloseTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.dial == nil {
		o.dial = (&net.Dialer{Timeout: o.DialTimeout}).DialContext
	}
	return o
}

// Validate reports the first option that cannot work, after defaults.
func (o Options) Validate() error {
	o = o.withDefaults()
	if len(o.Brokers) == 0 {
		return errors.New("option Brokers is empty, must have at least one HOST:PORT")
	}
	for _, addr := range o.Brokers {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			return fmt.Errorf("option Brokers has %q, must be HOST:PORT", addr)
		}
	}
	least := int64(o.MaxRecordBytes) + maxFraming
	switch {
	case !validTopic(o.Topic):
		return fmt.Errorf("option Topic is %q, must be 1 to 249 of a-z, A-Z, 0-9, dot, dash and underscore", o.Topic)
	case o.NewPartitions < 0 || o.NewPartitions > maxPartitions:
		return fmt.Errorf("option NewPartitions is %d, must be between 1 and %d, or 0 for the default", o.NewPartitions, maxPartitions)
	case o.Partitions < 0 || o.Partitions > maxPartitions:
		return fmt.Errorf("option Partitions is %d, must be between 1 and %d, or 0 for what the topic has", o.Partitions, maxPartitions)
	case o.Replication < 0 || o.Replication > 32767:
		return fmt.Errorf("option Replication is %d, must be between 1 and 32767, or 0 for the default", o.Replication)
	case o.MinInsync < 0 || o.Replication > 0 && o.MinInsync > o.Replication:
		return fmt.Errorf("option MinInsync is %d, must be between 1 and Replication, or 0 for the default", o.MinInsync)
	case o.MinRetention < 0:
		return fmt.Errorf("option MinRetention is %v, must not be negative", o.MinRetention)
	case o.MinRetentionBytes < 0:
		return fmt.Errorf("option MinRetentionBytes is %d, must not be negative", o.MinRetentionBytes)
	case o.MaxRecordBytes < 1 || o.MaxRecordBytes > MostRecordBytes:
		return fmt.Errorf("option MaxRecordBytes is %d, must be between 1 and %d", o.MaxRecordBytes, MostRecordBytes)
	case o.QueueBytes < least:
		return fmt.Errorf("option QueueBytes is %d, must be at least MaxRecordBytes + %d = %d, or the largest record never fits",
			o.QueueBytes, maxFraming, least)
	case o.QueueRecords < 1:
		return fmt.Errorf("option QueueRecords is %d, must be at least 1", o.QueueRecords)
	case o.MaxInFlight < 1 || o.MaxInFlight > 64:
		return fmt.Errorf("option MaxInFlight is %d, must be between 1 and 64", o.MaxInFlight)
	case o.FetchBytes < 1 || o.FetchBytes > maxFetchBytes:
		return fmt.Errorf("option FetchBytes is %d, must be between 1 and %d", o.FetchBytes, maxFetchBytes)
	case o.OwnBytes < 1:
		return fmt.Errorf("option OwnBytes is %d, must be at least 1", o.OwnBytes)
	case o.DialTimeout < 0 || o.RequestTimeout < 0 || o.AppendTimeout < 0 || o.CloseTimeout < 0:
		return errors.New("timeouts must not be negative")
	case o.AppendTimeout < o.RequestTimeout:
		return fmt.Errorf("option AppendTimeout is %v, must be at least RequestTimeout, %v, or nothing is ever repeated",
			o.AppendTimeout, o.RequestTimeout)
	}
	if _, err := o.codec(); err != nil {
		return err
	}
	_, err := o.SASL.mechanism()
	return err
}

func validTopic(name string) bool {
	if name == "" || len(name) > 249 || name == "." || name == ".." {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// within is ctx bounded by the time limit of one request.
func (o *Options) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, o.RequestTimeout)
}
