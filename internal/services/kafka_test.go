package services

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/pause"
)

// patience is how long a test waits for what must come. It is for what hangs, not a
// measure: a broker beside a busy machine's other work has taken 30 s to start.
const patience = 3 * time.Minute

// within is a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func newWriter(t *testing.T, addrs []string, topic string) *kafka.Writer {
	t.Helper()
	transport := &kafka.Transport{DialTimeout: time.Second, MetadataTTL: 500 * time.Millisecond}
	w := &kafka.Writer{
		Addr: kafka.TCP(addrs...), Topic: topic, RequiredAcks: kafka.RequireAll, Balancer: &kafka.RoundRobin{},
		BatchTimeout: time.Millisecond, WriteTimeout: 2 * time.Second, MaxAttempts: 20, Transport: transport,
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	})
	return w
}

// numbered are messages from+0 … from+n-1.
func numbered(from, n int) []kafka.Message {
	messages := make([]kafka.Message, n)
	for i := range messages {
		messages[i].Value = fmt.Appendf(nil, "message %d", from+i)
	}
	return messages
}

// readAll reads partition 0 from its start until n different values were seen
// and fails when an offset is left out.
func readAll(ctx context.Context, t *testing.T, addrs []string, topic string, n int) {
	t.Helper()
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: addrs, Topic: topic, MaxWait: 100 * time.Millisecond, MaxBytes: 1 << 20})
	defer r.Close()
	seen := map[string]bool{}
	for offset := int64(0); len(seen) < n; offset++ {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			t.Fatalf("after %d of %d values: %v", len(seen), n, err)
		}
		if m.Offset != offset {
			t.Fatalf("offset %d follows %d", m.Offset, offset-1)
		}
		seen[string(m.Value)] = true
	}
	for i := range n {
		if want := fmt.Sprintf("message %d", i); !seen[want] {
			t.Fatalf("%q was acknowledged and is not there", want)
		}
	}
}

func TestSharedKafkaKeepsWhatItAcknowledged(t *testing.T) {
	addrs, topic := Kafka(t), Topic(t, 1, kafka.ConfigEntry{ConfigName: "max.message.bytes", ConfigValue: "2097152"})
	ctx := within(t, patience)
	w := newWriter(t, addrs, topic)
	if err := w.WriteMessages(ctx, numbered(0, 1000)...); err != nil {
		t.Fatal(err)
	}
	readAll(ctx, t, addrs, topic, 1000)

	client, done := kafkaClient(addrs...)
	defer done()
	conf, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"max.message.bytes"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := conf.Resources[0].ConfigEntries[0].ConfigValue; got != "2097152" {
		t.Errorf("max.message.bytes is %s, the topic was created with 2097152", got)
	}
}

func TestTopicsEndWithTheirTest(t *testing.T) {
	addrs := Kafka(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		name = Topic(t, 2)
		if err := createTopic(within(t, patience), addrs, name+".more", 1, 1, nil); err != nil {
			t.Fatal(err)
		}
	})
	client, done := kafkaClient(addrs...)
	defer done()
	// A broker may answer from what it knew before the deletion for a moment.
	ctx := within(t, patience)
	for {
		meta, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{name, name + ".more"}})
		if err != nil {
			t.Fatal(err)
		}
		gone := 0
		for _, topic := range meta.Topics {
			if errors.Is(topic.Error, kafka.UnknownTopicOrPartition) {
				gone++
			}
		}
		if gone == 2 {
			return
		}
		if pause.For(ctx, 50*time.Millisecond) != nil {
			t.Fatalf("the topics are there after their test: %+v", meta.Topics)
		}
	}
}

func TestNobodyCreatesTopicsByUsingThem(t *testing.T) {
	w := newWriter(t, Kafka(t), TopicName(t))
	w.AllowAutoTopicCreation, w.MaxAttempts = true, 2
	err := w.WriteMessages(within(t, patience), numbered(0, 1)...)
	if !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("writing to a topic that is not there: %v, want %v", err, kafka.UnknownTopicOrPartition)
	}
}

// A cluster of three continues while one broker is killed, stopped or frozen,
// whichever it is, and loses nothing.
func TestThreeBrokersRideOutTheLossOfOne(t *testing.T) {
	c := OwnKafka(t, 3)
	ctx := within(t, patience)
	const topic = "t"
	if err := c.CreateTopic(ctx, topic, 1, 3); err != nil {
		t.Fatal(err)
	}
	for i, addr := range c.Addrs() {
		if _, err := leaderBy(ctx, addr, topic, 0); err != nil {
			t.Errorf("broker %d does not know the topic that was created: %v", i, err)
		}
	}
	w := newWriter(t, c.Addrs(), topic)
	n := 0
	write := func() {
		t.Helper()
		if err := w.WriteMessages(ctx, numbered(n, 50)...); err != nil {
			t.Fatal(err)
		}
		n += 50
	}
	write()
	leader := func() int {
		t.Helper()
		id, err := c.Leader(ctx, topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}

	frozen := leader()
	if err := c.Freeze(frozen); err != nil {
		t.Fatal(err)
	}
	write()
	if now := leader(); now == frozen {
		t.Errorf("broker %d leads although it is frozen", now)
	}
	if err := c.Thaw(frozen); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitBrokers(ctx, 3); err != nil {
		t.Fatal(err)
	}

	killed := leader()
	if err := c.Kill(killed); err != nil {
		t.Fatal(err)
	}
	write()
	if now := leader(); now == killed {
		t.Errorf("broker %d leads although it was killed", now)
	}
	if err := c.Restart(ctx, killed); err != nil {
		t.Fatal(err)
	}

	if err := c.Stop(leader()); err != nil {
		t.Fatal(err)
	}
	write()
	readAll(ctx, t, c.Addrs(), topic, n)
}

func TestOneBrokerKeepsItsDataWhenKilled(t *testing.T) {
	c := OwnKafka(t, 1)
	ctx := within(t, patience)
	if err := c.CreateTopic(ctx, "t", 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := newWriter(t, c.Addrs(), "t").WriteMessages(ctx, numbered(0, 100)...); err != nil {
		t.Fatal(err)
	}
	before := c.PIDs()[0]
	if err := c.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := probeKafka(c.Addrs()[0]); err == nil {
		t.Fatal("it answers although it was killed")
	}
	if err := c.Restart(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if now := c.PIDs()[0]; now == before {
		t.Fatalf("process %d was not started again", now)
	}
	readAll(ctx, t, c.Addrs(), "t", 100)
}

// TestDoors: clients that come through a door get the address that was asked for.
func TestDoors(t *testing.T) {
	skipQuick(t)
	installed(t)
	var listens, advertised [2]string
	c, err := StartKafkaWithDoors(within(t, patience), t.TempDir(), 1, Doors{
		Count: 2,
		Advertise: func(broker, door int, addr string) (string, error) {
			listens[door], advertised[door] = addr, loopback(firstPort+door)
			return advertised[door], nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, b := range c.brokers {
			b.close(t)
		}
	})
	for i, addr := range append(listens[:], c.Addrs()...) {
		told := append(advertised[:], c.Addrs()...)[i]
		err := ask(within(t, patience), addr, func(conn *kafka.Conn) error {
			brokers, err := conn.Brokers()
			if err == nil && (len(brokers) != 1 || loopback(brokers[0].Port) != told) {
				t.Errorf("at %s the brokers are %v, want %s", addr, brokers, told)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
