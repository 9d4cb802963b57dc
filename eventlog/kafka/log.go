package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	kgo "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/sasl"

	"github.com/musterhq/muster/eventlog"
)

// Log is an [eventlog.Log] in a topic of Apache Kafka. See the package
// documentation.
type Log struct {
	opts       Options
	sasl       sasl.Mechanism
	codec      compress.Codec
	dialer     *dialer
	transport  *kgo.Transport
	client     *kgo.Client
	partitions []*partition
	// batchBytes is the topic's max.message.bytes at the start.
	batchBytes int

	// ctx ends when everything is to end, after closing.
	ctx    context.Context
	cancel context.CancelFunc
	// closing is closed when Close begins.
	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
	// senders are the goroutines that produce, others those that do not.
	senders, others sync.WaitGroup
	// mu guards that nothing is added to others once they are waited for.
	mu struct {
		sync.Mutex
		released bool
	}

	trouble trouble
}

// Open opens the log, and creates the topic when there is none. ctx bounds
// that alone. A topic that does not suit is a [*TopicError].
func Open(ctx context.Context, opts Options) (_ *Log, err error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("log options: %w", err)
	}
	l := &Log{opts: opts.withDefaults(), closing: make(chan struct{})}
	l.opts.Brokers = append([]string(nil), opts.Brokers...)
	l.trouble.opts = &l.opts
	l.codec, _ = l.opts.codec()
	if l.sasl, err = l.opts.SASL.mechanism(); err != nil {
		return nil, fmt.Errorf("log options: %w", err)
	}
	if l.sasl != nil && l.sasl.Name() == "PLAIN" && l.opts.TLS == nil {
		l.opts.Logger.Warn("the password for Kafka is sent unencrypted: SASL PLAIN is used without TLS")
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.dialer = newDialer(l.opts.dial)
	l.transport = &kgo.Transport{
		Dial: l.dialer.DialContext, DialTimeout: l.opts.DialTimeout, TLS: l.opts.TLS, SASL: l.sasl,
		ClientID: l.opts.ClientID, MetadataTTL: metadataTTL, MetadataTopics: []string{l.opts.Topic},
		IdleTimeout: 5 * time.Minute, Context: l.ctx,
	}
	l.client = &kgo.Client{Addr: kgo.TCP(l.opts.Brokers...), Transport: l.transport, Timeout: l.opts.RequestTimeout}
	defer func() {
		if err != nil {
			l.release()
			err = fmt.Errorf("open the log in Kafka (%s): %w", addresses(l.opts.Brokers), err)
		}
	}()
	if err := l.probe(ctx); err != nil {
		return nil, err
	}
	topic, err := l.topic(ctx)
	if err != nil {
		return nil, err
	}
	for i := range topic.Partitions {
		l.partitions = append(l.partitions, l.newPartition(i))
	}
	l.learn(topic)
	l.spawn(l.watchLeaders)
	for _, p := range l.partitions {
		for range l.opts.MaxInFlight {
			l.senders.Go(p.run)
		}
	}
	l.opts.Logger.Info("log in Kafka is open", "topic", l.opts.Topic, "partitions", len(l.partitions), "max_message_bytes", l.batchBytes)
	return l, nil
}

// probe connects to the brokers named, until one answers as a broker does. It
// says what is wrong with an address, with TLS or with the password, where the
// client would only run out of time.
func (l *Log) probe(ctx context.Context) error {
	var errs []error
	for _, addr := range l.opts.Brokers {
		c, err := l.connect(ctx, addr)
		if err == nil {
			c.Close()
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// connect makes a connection to the broker at addr. ctx bounds all of it.
func (l *Log) connect(ctx context.Context, addr string) (_ *brokerConn, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("connect to broker %s: %w", addr, err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, l.opts.DialTimeout)
	defer cancel()
	nc, err := l.dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	// The handshakes below know no context.
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			nc.Close()
			if ctx.Err() != nil {
				err = fmt.Errorf("%w (%w)", ctx.Err(), err)
			}
		}
	}()
	wire := nc
	if l.opts.TLS != nil {
		t := tls.Client(nc, tlsFor(l.opts.TLS, addr))
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		wire = t
	}
	c := &brokerConn{addr: addr}
	if c.fetch, err = askVersions(wire, l.opts.ClientID); err != nil {
		return nil, err
	}
	c.Conn = protocol.NewConn(wire, l.opts.ClientID)
	if l.sasl != nil {
		if err := authenticate(ctx, c.Conn, addr, l.sasl); err != nil {
			return nil, fmt.Errorf("SASL (%s as %q): %w", l.sasl.Name(), l.opts.SASL.Username, err)
		}
	}
	return c, nil
}

// Partitions implements [eventlog.Log].
func (l *Log) Partitions() int { return len(l.partitions) }

func (l *Log) partition(i int) (*partition, error) {
	if i < 0 || i >= len(l.partitions) {
		return nil, fmt.Errorf("partition %d does not exist, the log has %d", i, len(l.partitions))
	}
	return l.partitions[i], nil
}

// Append implements [eventlog.Log]. When Kafka does not acknowledge the record
// within Options.AppendTimeout the error is [eventlog.ErrUncertain]; the log
// continues.
func (l *Log) Append(ctx context.Context, partition int, data []byte) (int64, error) {
	p, err := l.partition(partition)
	if err != nil {
		return 0, err
	}
	if limit := l.maxRecord(); len(data) > limit {
		p.counters.refusedTooLarge.Add(1)
		return 0, fmt.Errorf("%w: %d bytes, the limit is %d", eventlog.ErrTooLarge, len(data), limit)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	w, err := p.enqueue(data)
	if err != nil {
		return 0, err
	}
	return w.wait(ctx)
}

// inflateLimit bounds what a batch inflates to.
func (l *Log) inflateLimit() int { return max(64<<20, 4*l.batchBytes) }

func (l *Log) maxRecord() int {
	return min(l.opts.MaxRecordBytes, l.batchBytes-batchHeaderSize-maxFraming)
}

// Trim implements [eventlog.Log]: it does nothing. What a topic keeps is its
// own affair (retention.ms, retention.bytes), and kafka-go does not speak
// DeleteRecords.
func (l *Log) Trim(partition int, _ int64) error {
	_, err := l.partition(partition)
	return err
}

// Stats returns a snapshot.
func (l *Log) Stats() Stats {
	var s Stats
	for _, p := range l.partitions {
		c := &p.counters
		s.Appended += c.appended.Load()
		s.AppendedBytes += c.appendedBytes.Load()
		s.Batches += c.batches.Load()
		s.RefusedFull += c.refusedFull.Load()
		s.RefusedTooLarge += c.refusedTooLarge.Load()
		s.RefusedFailed += c.refusedFailed.Load()
		s.Produces += c.produces.Load()
		s.ProduceTime += time.Duration(c.produceNanos.Load())
		s.ProduceFailures += c.failures.Load()
		s.Retries += c.retries.Load()
		s.Questions += c.questions.Load()
		s.Fetches += c.fetches.Load()
		s.FetchedBytes += c.fetchedBytes.Load()
		s.OwnBatches += c.ownBatches.Load()
		s.OwnRecords += c.ownRecords.Load()
		s.Reconnects += c.reconnects.Load()
		s.LeaderChanges += c.leaderChanges.Load()
		p.mu.Lock()
		s.QueueRecords += p.mu.queuedRecords
		s.QueueBytes += p.mu.queuedBytes
		p.mu.Unlock()
	}
	s.Failing, s.LastErrorAt, s.LastError = l.trouble.state()
	return s
}

// Close implements [eventlog.Log]. Records that wait are still produced for
// Options.CloseTimeout; readers get ErrClosed.
func (l *Log) Close() error {
	l.closeOnce.Do(func() {
		close(l.closing)
		for _, p := range l.partitions {
			p.close()
		}
		late := time.AfterFunc(l.opts.CloseTimeout, l.cancel)
		l.senders.Wait()
		if !late.Stop() {
			l.closeErr = fmt.Errorf("log in Kafka: records were still waiting %v after Close", l.opts.CloseTimeout)
		}
		l.release()
	})
	return l.closeErr
}

// spawn runs f as one of others, unless the log is being released.
func (l *Log) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.released {
		return false
	}
	l.others.Go(f)
	return true
}

// release ends what is left and the connections.
func (l *Log) release() {
	l.cancel()
	l.mu.Lock()
	l.mu.released = true
	l.mu.Unlock()
	l.dialer.close()
	l.others.Wait()
	l.transport.CloseIdleConnections()
}

func (l *Log) isClosing() bool {
	select {
	case <-l.closing:
		return true
	default:
		return false
	}
}

func addresses(brokers []string) string {
	if len(brokers) == 1 {
		return brokers[0]
	}
	return fmt.Sprintf("%s and %d more", brokers[0], len(brokers)-1)
}

var _ eventlog.Log = (*Log)(nil)
