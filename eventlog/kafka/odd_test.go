package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	kgo "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/logtest"
)

// deleteRecords has Kafka drop what is below the offset, as retention does.
// kafka-go does not speak it.
func deleteRecords(t testing.TB, l *Log, partition int, before int64) {
	t.Helper()
	c, err := l.connect(within(t, time.Minute), l.partitions[partition].leader.present().addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	be := binary.BigEndian
	req := be.AppendUint16(make([]byte, 4), 21)
	req = be.AppendUint16(req, 1)
	req = be.AppendUint32(req, 1)
	req = append(req, 0xff, 0xff) // no client id
	req = be.AppendUint32(req, 1)
	req = be.AppendUint16(req, uint16(len(l.opts.Topic)))
	req = append(req, l.opts.Topic...)
	req = be.AppendUint32(req, 1)
	req = be.AppendUint32(req, uint32(partition))
	req = be.AppendUint64(req, uint64(before))
	req = be.AppendUint32(req, 10_000)
	be.PutUint32(req, uint32(len(req)-4))
	if _, err := c.Write(req); err != nil {
		t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		t.Fatal(err)
	}
	res := make([]byte, be.Uint32(size[:]))
	if _, err := io.ReadFull(c, res); err != nil {
		t.Fatal(err)
	}
	if code := be.Uint16(res[len(res)-2:]); code != 0 {
		t.Fatal(kgo.Error(code))
	}
}

// TestRetentionL1: a place that retention took is ErrTrimmed, for a reader that
// begins there and for one that stands there.
func TestRetentionL1(t *testing.T) {
	opts := shared(t)
	opts.FetchBytes = 1000
	l := mustOpen(t, opts)
	for i := range int64(50) {
		mustAppend(t, l, 0, logtest.Payload(i, 500))
	}
	inside, err := l.Read(0, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	if e, err := inside.Next(t.Context()); err != nil || e.Offset != 10 {
		t.Fatal(e.Offset, err)
	}
	deleteRecords(t, l, 0, 30)
	if start, end, err := l.Bounds(t.Context(), 0); start != 30 || end != 50 || err != nil {
		t.Fatal(start, end, err)
	}
	if _, err := l.Read(0, 29); !errors.Is(err, eventlog.ErrTrimmed) || !strings.Contains(err.Error(), "starts at 30") {
		t.Fatal(err)
	}
	// It may hand out what it has.
	for off := int64(11); ; off++ {
		e, err := inside.Next(within(t, time.Minute))
		if errors.Is(err, eventlog.ErrTrimmed) {
			break
		}
		if err != nil || e.Offset != off || off > 29 {
			t.Fatal(e.Offset, err)
		}
	}
	got, err := logtest.ReadAll(within(t, time.Minute), l, 0, 30, 50)
	if err != nil || string(got[0]) != string(logtest.Payload(30, 500)) {
		t.Fatal(err)
	}
}

// TestWrittenByOthers reads what kafka-go's own writer made: keys, headers,
// every compression, no value.
func TestWrittenByOthers(t *testing.T) {
	opts := shared(t)
	l := mustOpen(t, opts)
	transport := &kgo.Transport{}
	defer transport.CloseIdleConnections()
	var want []string
	for _, codec := range []compress.Compression{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		w := &kgo.Writer{
			Addr: kgo.TCP(opts.Brokers...), Topic: opts.Topic, RequiredAcks: kgo.RequireAll, Compression: codec,
			BatchTimeout: time.Millisecond, Transport: transport,
		}
		var messages []kgo.Message
		for i := range 20 {
			value := fmt.Sprintf("%s %d %s", codec, i, strings.Repeat("y", i*100))
			messages = append(messages, kgo.Message{
				Key: []byte("key"), Value: []byte(value), Time: time.Unix(1_700_000_000+int64(i), 0),
				Headers: []kgo.Header{{Key: "h", Value: []byte("v")}},
			})
			want = append(want, value)
		}
		messages = append(messages, kgo.Message{Key: []byte("no value")})
		want = append(want, "")
		if err := w.WriteMessages(within(t, 20*time.Second), messages...); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	got, err := logtest.ReadAll(within(t, time.Minute), l, 0, 0, int64(len(want)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if string(got[i]) != want[i] {
			t.Fatalf("record %d is %.30q, want %.30q", i, got[i], want[i])
		}
	}
}

// TestOthersReadIt: kafka-go's own reader finds what Append stored, compressed
// or not.
func TestOthersReadIt(t *testing.T) {
	for _, compression := range []string{"none", "lz4", "zstd"} {
		opts := shared(t)
		opts.Topic += "." + compression
		opts.Compression = compression
		l := mustOpen(t, opts)
		var want []string
		for i := range int64(10) {
			data := string(logtest.Payload(i, 10)) + strings.Repeat("z", int(i)*1000)
			want = append(want, data)
			mustAppend(t, l, 0, []byte(data))
		}
		r := kgo.NewReader(kgo.ReaderConfig{Brokers: opts.Brokers, Topic: opts.Topic, MaxWait: 50 * time.Millisecond, MaxBytes: 1 << 20})
		for i := range want {
			m, err := r.ReadMessage(within(t, time.Minute))
			if err != nil || string(m.Value) != want[i] || m.Key != nil || len(m.Headers) > 0 || m.Offset != int64(i) {
				t.Fatalf("%s: %d: %.20q, %v, want %.20q", compression, m.Offset, m.Value, err, want[i])
			}
		}
		r.Close()
		own, err := l.Read(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := own.Next(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		// Retention counts from this time, the latest of a batch.
		at := time.UnixMilli(int64(binary.BigEndian.Uint64(own.(*Reader).scan.set[35:])))
		if at.Before(time.Now().Add(-time.Hour)) {
			t.Errorf("the batch has the time %v; retention needs that of the append", at)
		}
		own.Close()
	}
}

// TestDamageStopsTheReader: the error names topic, partition and offset, and
// stays.
func TestDamageStopsTheReader(t *testing.T) {
	opts := shared(t)
	l := mustOpen(t, opts)
	mustAppend(t, l, 0, []byte("a"))
	buf := appendRecord(make([]byte, prefixSize), 0, nil, []byte("alien"))
	set, err := sealBatch(buf, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A broker would not take it.
	set[sizePrefix+atAttributes+1] |= flagTransactional
	fixCRC(set[sizePrefix:])
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.(*Reader).scan.reset(set[sizePrefix:])
	_, err = r.Next(t.Context())
	var damage *eventlog.CorruptError
	if !errors.As(err, &damage) || !strings.Contains(damage.File, "partition 0") || !strings.Contains(damage.File, opts.Topic) || damage.Offset != 0 {
		t.Fatal(err)
	}
	if _, again := r.Next(t.Context()); again != err {
		t.Fatalf("it continues: %v", again)
	}
}

// TestLatency: a record reaches a reader that waits as soon as it is there.
func TestLatency(t *testing.T) {
	l := mustOpen(t, shared(t))
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	type seen struct {
		offset int64
		at     time.Time
	}
	arrived := make(chan seen, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for {
			e, err := r.Next(ctx)
			if err != nil {
				close(arrived)
				return
			}
			arrived <- seen{e.Offset, time.Now()}
		}
	}()
	var acks, read []time.Duration
	for i := range 100 {
		begin := time.Now()
		off := mustAppend(t, l, 0, logtest.Payload(int64(i), 200))
		acked := time.Now()
		got := <-arrived
		if got.offset != off {
			t.Fatalf("%d, want %d", got.offset, off)
		}
		acks = append(acks, acked.Sub(begin))
		read = append(read, got.at.Sub(acked))
		time.Sleep(time.Millisecond) // the reader waits when the next record comes: that it then reads at once is what is tested
	}
	cancel()
	for range arrived {
	}
	slices.Sort(acks)
	slices.Sort(read)
	t.Logf("append: median %v, 95th %v; read since it was acknowledged: median %v, 95th %v", acks[50], acks[95], read[50], read[95])
	// The machine may be busy; a reader that polls would take far longer.
	if read[50] > 100*time.Millisecond {
		t.Errorf("a reader that waits sees a record %v after it was acknowledged", read[50])
	}
}
