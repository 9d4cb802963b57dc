package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/logtest"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/services"
)

// load appends from several goroutines, and reads along, until stop.
type load struct {
	// l is read along, and written to as the others are.
	l       *Log
	others  []*Log
	stopped atomic.Bool
	// appenders end with stopped, reading with cancel.
	appenders, reading sync.WaitGroup
	reader             eventlog.Reader
	cancel             context.CancelFunc
	mu                 struct {
		sync.Mutex
		// acked are payloads by the offset Append returned, read what the
		// reader saw in order.
		acked  map[int64]string
		failed map[string]error
		read   []string
	}
	count atomic.Int64
}

const loaders = 6

func startLoad(t testing.TB, l *Log, others ...*Log) *load {
	t.Helper()
	d := &load{l: l, others: others}
	d.mu.acked, d.mu.failed = map[int64]string{}, map[string]error{}
	var err error
	if d.reader, err = l.Read(0, 0); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, d.cancel = context.WithCancel(context.Background())
	t.Cleanup(d.cancel)
	d.reading.Go(func() {
		for {
			e, err := d.reader.Next(ctx)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the reader stops at %d: %v", len(d.mu.read), err)
				}
				return
			}
			d.mu.Lock()
			if e.Offset != int64(len(d.mu.read)) {
				t.Errorf("the reader sees offset %d after %d", e.Offset, len(d.mu.read)-1)
			}
			d.mu.read = append(d.mu.read, string(e.Data))
			d.mu.Unlock()
		}
	})
	for a := range loaders {
		d.appenders.Go(func() {
			l := l
			if a < len(others) {
				l = others[a]
			}
			for i := 0; !d.stopped.Load(); i++ {
				data := fmt.Sprintf("%d/%d/%s", a, i, strings.Repeat("x", i%3000))
				off, err := l.Append(context.Background(), 0, []byte(data))
				d.mu.Lock()
				if err != nil {
					d.mu.failed[data] = err
				} else {
					d.mu.acked[off] = data
					d.count.Add(1)
				}
				d.mu.Unlock()
			}
		})
	}
	return d
}

// awaitMore waits until n more records are acknowledged.
func (d *load) awaitMore(t testing.TB, n int64) {
	t.Helper()
	until := d.count.Load() + n
	eventually.Succeeds(t, func() error {
		if d.count.Load() < until {
			return fmt.Errorf("appends do not continue: %+v", d.l.Stats())
		}
		return nil
	})
}

// check stops the load and compares: every acknowledged record is at its
// offset, the reader saw what is there, and there is nothing twice unless it
// was repeated.
func (d *load) check(t testing.TB) (duplicates int) {
	t.Helper()
	d.stopped.Store(true)
	d.appenders.Wait()
	eventually.Holds(t, "the reader is at the end", func() bool {
		_, end, err := d.l.Bounds(within(t, 40*time.Second), 0)
		if err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		read := int64(len(d.mu.read))
		d.mu.Unlock()
		if read != end && t.Failed() {
			t.FailNow()
		}
		return read == end
	})
	d.cancel()
	d.reading.Wait()
	d.reader.Close()
	stats := d.l.Stats()
	retries := stats.Retries
	for _, l := range d.others {
		retries += l.Stats().Retries
	}
	got, err := logtest.ReadAll(within(t, 30*time.Second), d.l, 0, 0, int64(len(d.mu.read)))
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	last := map[string]int{}
	for i, data := range got {
		if d.mu.read[i] != string(data) {
			t.Fatalf("the reader saw record %d as %.30q, it is %.30q", i, d.mu.read[i], data)
		}
		if times[string(data)]++; times[string(data)] > 1 {
			duplicates++
			continue
		}
		// One appender waits for each record, so its first copies are in order.
		var a string
		var n int
		if _, err := fmt.Sscanf(strings.Replace(string(data), "/", " ", 2), "%s %d", &a, &n); err != nil {
			t.Fatal(err)
		}
		if before, ok := last[a]; ok && n <= before {
			t.Errorf("appender %s's record %d comes after %d", a, n, before)
		}
		last[a] = n
	}
	for off, data := range d.mu.acked {
		if off >= int64(len(got)) || string(got[off]) != data {
			t.Errorf("L1: record %d was acknowledged and is not there", off)
		}
	}
	for data, err := range d.mu.failed {
		if !errors.Is(err, eventlog.ErrUncertain) {
			t.Errorf("%.20q: %v", data, err)
		}
	}
	if extra := len(times) - len(d.mu.acked) - len(d.mu.failed); extra > 0 {
		t.Errorf("%d records are there that were not appended", extra)
	}
	if duplicates > 0 && retries == 0 {
		t.Errorf("%d records are there twice and nothing was repeated", duplicates)
	}
	if stats.OwnRecords == 0 || len(d.others) > 0 && stats.Fetches == 0 {
		t.Errorf("%d records came from memory, %d fetches from the broker: not the test it should be", stats.OwnRecords, stats.Fetches)
	}
	t.Logf("%d records acknowledged, %d failed, %d twice, %d batches, %d retries, %d from memory, %d fetches, %d reconnects, %d leaders",
		len(d.mu.acked), len(d.mu.failed), duplicates, stats.Batches, stats.Retries, stats.OwnRecords, stats.Fetches, stats.Reconnects, stats.LeaderChanges)
	return duplicates
}

// TestOneBrokerKilledAndFrozenL1: the only broker is killed and started again,
// and frozen, while two nodes write; appends wait, none fails, and the node that
// reads along sees what the broker has in the end.
func TestOneBrokerKilledAndFrozenL1(t *testing.T) {
	ownBrokers(t)
	c := services.OwnKafka(t, 1)
	opts := Options{Brokers: c.Addrs(), Timeouts: Timeouts{RequestTimeout: 2 * time.Second, AppendTimeout: eventually.Limit, DialTimeout: time.Second}, Limits: Limits{MaxRecordBytes: 100_000}, Logger: testLogger(t)}
	l := mustOpen(t, opts)
	d := startLoad(t, l, mustOpen(t, opts))
	d.awaitMore(t, 200)
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	step(c.Kill(0))
	eventually.Succeeds(t, func() error {
		if s := l.Stats(); s.Failing == 0 || s.LastError == nil {
			return fmt.Errorf("the broker is dead and Stats do not tell: %+v", s)
		}
		return nil
	})
	step(c.Restart(within(t, eventually.Limit), 0))
	d.awaitMore(t, 200)
	step(c.Freeze(0))
	time.Sleep(3 * time.Second) // a broker that answers nothing for longer than RequestTimeout is what is tested
	step(c.Thaw(0))
	d.awaitMore(t, 200)
	eventually.Succeeds(t, func() error {
		if s := l.Stats(); s.Failing > 0 {
			return fmt.Errorf("all is well and Stats say otherwise: %+v", s)
		}
		return nil
	})
	d.check(t)
	if len(d.mu.failed) > 0 {
		t.Errorf("%d appends failed although the broker came back in time", len(d.mu.failed))
	}
	if s := l.Stats(); s.Retries == 0 || s.Reconnects == 0 {
		t.Errorf("nothing was repeated: not the test it should be: %+v", s)
	}
}

// TestThreeBrokersLeaderLostL1: the leader of three is frozen, killed and
// stopped in turn; appends wait for the next leader and none fails.
func TestThreeBrokersLeaderLostL1(t *testing.T) {
	ownBrokers(t)
	c := services.OwnKafka(t, 3)
	opts := Options{
		Brokers: c.Addrs(), TopicOptions: TopicOptions{Topic: DefaultTopic},
		Timeouts: Timeouts{RequestTimeout: 4 * time.Second, AppendTimeout: eventually.Limit, DialTimeout: time.Second},
		Limits:   Limits{MaxRecordBytes: 100_000}, Logger: testLogger(t),
	}
	l := mustOpen(t, opts)
	topic, err := l.metadata(t.Context())
	if err != nil || len(topic.Partitions[0].Replicas) != 3 {
		t.Fatalf("%+v, %v", topic, err)
	}
	d := startLoad(t, l, mustOpen(t, opts))
	d.awaitMore(t, 200)
	ctx := within(t, 2*eventually.Limit)
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	leader := func() int {
		t.Helper()
		i, err := c.Leader(ctx, DefaultTopic, 0)
		step(err)
		return i
	}
	i := leader()
	begin := time.Now()
	step(c.Freeze(i))
	d.awaitMore(t, 200)
	t.Logf("continued %v after the leader was frozen", time.Since(begin))
	step(c.Thaw(i))
	d.awaitMore(t, 100)
	step(c.WaitBrokers(ctx, 3))

	i = leader()
	begin = time.Now()
	step(c.Kill(i))
	d.awaitMore(t, 200)
	t.Logf("continued %v after the leader was killed", time.Since(begin))
	step(c.Restart(ctx, i))
	step(c.WaitBrokers(ctx, 3))

	i = leader()
	begin = time.Now()
	step(c.Stop(i))
	d.awaitMore(t, 200)
	t.Logf("continued %v after the leader was stopped", time.Since(begin))
	d.check(t)
	if len(d.mu.failed) > 0 {
		t.Errorf("%d appends failed although two brokers were left: %v", len(d.mu.failed), l.Stats().LastError)
	}
	if s := l.Stats(); s.LeaderChanges < 4 {
		t.Errorf("%d leaders: not the test it should be", s.LeaderChanges)
	}
	// One broker is still stopped.
	tooFewInSync(t, opts)
}

// tooFewInSync: min.insync.replicas that is not met fails appends with
// ErrUncertain, those in time wait for it, and the log continues after.
func tooFewInSync(t *testing.T, opts Options) {
	patient := mustOpen(t, opts)
	opts.RequestTimeout, opts.AppendTimeout = 2*time.Second, 2*time.Second
	l := mustOpen(t, opts)
	begins := mustAppend(t, l, 0, []byte("before"))
	alter(t, opts, "min.insync.replicas", "3")
	// It takes effect in a while.
	var begin time.Time
	var err error
	eventually.Holds(t, "an append fails", func() bool {
		begin = time.Now()
		_, err = l.Append(within(t, 20*time.Second), 0, []byte("during"))
		return err != nil
	})
	if !errors.Is(err, eventlog.ErrUncertain) || !strings.Contains(err.Error(), "Not Enough Replicas") {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 1500*time.Millisecond || took > 10*time.Second {
		t.Errorf("it failed after %v", took)
	}
	done := make(chan error, 1)
	go func() { _, err := patient.Append(context.Background(), 0, []byte("waits")); done <- err }()
	time.Sleep(200 * time.Millisecond) // nothing may happen in a while: it waits, and does not fail at once
	alter(t, opts, "min.insync.replicas", "2")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	eventually.Succeeds(t, func() error { _, err := l.Append(t.Context(), 0, []byte("after")); return err })
	_, end, err := l.Bounds(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := logtest.ReadAll(within(t, 10*time.Second), l, 0, begins, end)
	if err != nil || string(got[0]) != "before" || string(got[len(got)-1]) != "after" {
		t.Fatalf("%q, %v", got, err)
	}
	if s := l.Stats(); s.RefusedFailed == 0 || s.Failing != 0 || s.Retries == 0 {
		t.Errorf("%+v", s)
	}
}

// TestSmallerMessagesThanAtTheStart: max.message.bytes is lowered while the
// log is open. A record too large says so; batches are made smaller.
func TestSmallerMessagesThanAtTheStart(t *testing.T) {
	opts := shared(t)
	l := mustOpen(t, opts)
	alter(t, opts, "max.message.bytes", "200000")
	// It takes effect in a while.
	var err error
	eventually.Holds(t, "an append fails", func() bool {
		_, err = l.Append(within(t, 20*time.Second), 0, make([]byte, 300_000))
		return err != nil
	})
	if !errors.Is(err, eventlog.ErrTooLarge) {
		t.Fatal(err)
	}
	_, begin, err := l.Bounds(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	// Records of 40 KB that wait together make too large a batch at first.
	var wg sync.WaitGroup
	var mu sync.Mutex
	at := map[int64]int{}
	for a := range 32 {
		wg.Go(func() {
			for i := range 5 {
				n := 5*a + i
				off, err := l.Append(within(t, 20*time.Second), 0, logtest.Payload(int64(n), 40_000))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				at[off] = n
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	got, err := logtest.ReadAll(within(t, 20*time.Second), l, 0, begin, begin+160)
	if err != nil {
		t.Fatal(err)
	}
	for i, data := range got {
		if n, ok := at[begin+int64(i)]; !ok || string(data) != string(logtest.Payload(int64(n), 40_000)) {
			t.Errorf("record %d is not what was appended there", i)
		}
	}
	if s := l.Stats(); s.ProduceFailures < 2 || s.QueueBytes != 0 || s.QueueRecords != 0 {
		t.Errorf("%+v: not the test it should be", s)
	}
}

// chaos makes connections that can be held and cut.
type chaos struct {
	mu   sync.Mutex
	open map[net.Conn]bool
	held chan struct{} // closed when writes may continue
	// heldFrom is the size in bytes from which writes are held.
	heldFrom int
	// trickle bounds what one read returns, 0 for no bound; connections take
	// long, too.
	trickle int
}

type chaosConn struct {
	net.Conn
	c *chaos
}

func (c *chaos) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.trickle > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[net.Conn]bool{}
	}
	c.open[conn] = true
	return chaosConn{conn, c}, nil
}

func (c *chaos) hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gate := make(chan struct{})
	c.held = gate
	return func() {
		c.mu.Lock()
		c.held = nil
		c.mu.Unlock()
		close(gate)
	}
}

func (c *chaos) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.Close()
	}
	clear(c.open)
}

func (c chaosConn) Read(b []byte) (int, error) {
	if c.c.trickle > 0 {
		time.Sleep(20 * time.Microsecond) // a slow connection is what is tested
		b = b[:min(len(b), c.c.trickle)]
	}
	return c.Conn.Read(b)
}

func (c chaosConn) Write(b []byte) (int, error) {
	c.c.mu.Lock()
	gate := c.c.held
	c.c.mu.Unlock()
	if gate != nil && len(b) >= c.c.heldFrom {
		<-gate
	}
	return c.Conn.Write(b)
}

// TestConnectionsCutL1 cuts all connections again and again.
func TestConnectionsCutL1(t *testing.T) {
	var net chaos
	opts := shared(t)
	other := mustOpen(t, opts)
	opts.dial = net.dial
	l := mustOpen(t, opts)
	// What the other writes has to be fetched.
	d := startLoad(t, l, other)
	var begun time.Time // of what is waited for once there were enough cuts
	for cuts := 0; ; cuts++ {
		if s := l.Stats(); cuts >= 25 && s.Retries > 0 && s.Reconnects >= 5 && s.OwnRecords > 0 {
			break
		}
		if cuts == 25 {
			begun = time.Now()
		}
		if cuts > 25 && time.Since(begun) > time.Minute {
			t.Fatalf("not the test it should be: %+v", l.Stats())
		}
		d.awaitMore(t, 20)
		net.cut()
	}
	d.check(t)
	if len(d.mu.failed) > 0 {
		t.Errorf("%d appends failed", len(d.mu.failed))
	}
}

// TestContextEndsAmidAnAnswer: answers arrive in pieces and are cut amid a
// batch, and the reader's context ends again and again; every record comes once.
func TestContextEndsAmidAnAnswer(t *testing.T) {
	net := chaos{trickle: 333}
	opts := shared(t)
	opts.dial, opts.FetchBytes = net.dial, 5000
	l := mustOpen(t, opts)
	var want [][]byte
	for i := range int64(200) {
		want = append(want, logtest.Payload(i, int(i*13%1500)))
		mustAppend(t, l, 0, want[i])
	}
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ended := 0
	begin := time.Now()
	for i, try := 0, 0; i < len(want); try++ {
		if time.Since(begin) > eventually.Limit {
			t.Fatalf("at record %d after %v", i, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+try%7*100)*time.Microsecond)
		e, err := r.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			ended++
			continue
		}
		if err != nil || e.Offset != int64(i) || !bytes.Equal(e.Data, want[i]) {
			t.Fatalf("record %d: got %d, %.20q, %v", i, e.Offset, e.Data, err)
		}
		i++
	}
	if s := l.Stats(); ended < 100 || s.Reconnects > 0 {
		t.Errorf("the context ended %d times, %+v: not the test it should be", ended, s)
	}
}

// TestQueueIsBoundedQ1 fills the queue while nothing reaches Kafka: Append
// refuses at once, and the queue serves again after.
func TestQueueIsBoundedQ1(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Options)
		fits int
	}{
		{"bytes", func(o *Options) { o.MaxRecordBytes, o.QueueBytes = 1000, 10*(1000+maxFraming) }, 10},
		{"records", func(o *Options) { o.QueueRecords = 7 }, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			var net chaos
			opts := shared(t)
			opts.dial = net.dial
			c.set(&opts)
			l := mustOpen(t, opts)
			release := sync.OnceFunc(net.hold())
			defer release()
			data := make([]byte, 1000)
			errs := make(chan error, c.fits)
			for range c.fits {
				go func() {
					_, err := l.Append(context.Background(), 0, data)
					errs <- err
				}()
			}
			eventually.Succeeds(t, func() error {
				if s := l.Stats(); s.QueueRecords < c.fits {
					return fmt.Errorf("%+v", s)
				}
				return nil
			})
			if _, err := l.Append(t.Context(), 0, data); !errors.Is(err, eventlog.ErrQueueFull) {
				t.Fatal(err)
			}
			release()
			for range c.fits {
				if err := <-errs; err != nil {
					t.Fatal(err)
				}
			}
			mustAppend(t, l, 0, data)
			if s := l.Stats(); s.RefusedFull != 1 || s.QueueBytes != 0 || s.QueueRecords != 0 || s.Batches >= s.Appended {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestCloseEndsInTime: brokers that are gone do not hold up Close for longer
// than was asked for, and its waiters get an error.
func TestCloseEndsInTime(t *testing.T) {
	var net chaos
	opts := shared(t)
	opts.dial = net.dial
	opts.CloseTimeout = 500 * time.Millisecond
	l := mustOpen(t, opts)
	release := sync.OnceFunc(net.hold())
	defer release()
	done := make(chan error, 1)
	go func() { _, err := l.Append(context.Background(), 0, []byte("x")); done <- err }()
	eventually.Holds(t, "the record waits", func() bool { return l.Stats().QueueRecords != 0 })
	begin := time.Now()
	if err := l.Close(); err == nil || time.Since(begin) > 5*time.Second {
		t.Errorf("closed after %v, %v", time.Since(begin), err)
	}
	if err := <-done; !errors.Is(err, eventlog.ErrUncertain) {
		t.Error(err)
	}
}
