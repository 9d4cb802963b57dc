package kafka

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/services"
)

func TestOptionsRefused(t *testing.T) {
	ok := Options{Brokers: []string{"h:1"}}
	if err := ok.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field string
		set   func(*Options)
	}{
		{"Brokers", func(o *Options) { o.Brokers = nil }},
		{"Brokers", func(o *Options) { o.Brokers = []string{"localhost"} }},
		{"Topic", func(o *Options) { o.Topic = "a b" }},
		{"Topic", func(o *Options) { o.Topic = strings.Repeat("a", 250) }},
		{"Partitions", func(o *Options) { o.Partitions = -1 }},
		{"Partitions", func(o *Options) { o.Partitions = 5000 }},
		{"Replication", func(o *Options) { o.Replication = -1 }},
		{"MinInsync", func(o *Options) { o.Replication, o.MinInsync = 2, 3 }},
		{"MinRetention", func(o *Options) { o.MinRetention = -1 }},
		{"MinRetentionBytes", func(o *Options) { o.MinRetentionBytes = -1 }},
		{"MaxRecordBytes", func(o *Options) { o.MaxRecordBytes = 1 << 30 }},
		{"QueueBytes", func(o *Options) { o.QueueBytes = 1000 }},
		{"QueueRecords", func(o *Options) { o.QueueRecords = -1 }},
		{"MaxInFlight", func(o *Options) { o.MaxInFlight = 65 }},
		{"FetchBytes", func(o *Options) { o.FetchBytes = -1 }},
		{"Compression", func(o *Options) { o.Compression = "rar" }},
		{"timeouts", func(o *Options) { o.DialTimeout = -1 }},
		{"AppendTimeout", func(o *Options) { o.AppendTimeout = time.Second }},
		{"SASL.Mechanism", func(o *Options) { o.SASL = &SASL{Mechanism: "x", Username: "u", Password: "p"} }},
		{"password", func(o *Options) { o.SASL = &SASL{Mechanism: "PLAIN", Username: "u"} }},
	} {
		o := ok
		c.set(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

func configs(kv ...string) (out []kgo.ConfigEntry) {
	for i := 0; i < len(kv); i += 2 {
		out = append(out, kgo.ConfigEntry{ConfigName: kv[i], ConfigValue: kv[i+1]})
	}
	return out
}

// TestTopicIsCheckedAtOnce: every setting that breaks a promise is named, with
// what was found, what is needed and how to get there.
func TestTopicIsCheckedAtOnce(t *testing.T) {
	opts := shared(t)
	opts.Partitions, opts.Replication, opts.MinInsync = 3, 2, 2
	opts.Topic = services.Topic(t, 2, configs(
		"retention.ms", "3600000", "retention.bytes", "1000000", "cleanup.policy", "compact",
		"max.message.bytes", "5000", "message.timestamp.type", "CreateTime",
		"unclean.leader.election.enable", "true", "min.insync.replicas", "1")...)
	_, err := Open(within(t, 20*time.Second), opts)
	var unfit *TopicError
	if !errors.As(err, &unfit) {
		t.Fatal(err)
	}
	text := err.Error()
	want := map[string][]string{
		"the number of partitions":       {"2", "3", "open it with 2"},
		"the number of replicas":         {"1", "at least 2", "kafka-reassign-partitions.sh"},
		"min.insync.replicas":            {"1", "at least 2", "--add-config min.insync.replicas=2"},
		"retention.ms":                   {"3600000 (1h0m0s)", "604800000 (168h0m0s)", "--add-config retention.ms=-1"},
		"retention.bytes":                {"1000000", "-1", "--add-config retention.bytes=-1"},
		"cleanup.policy":                 {"compact", "delete", "--add-config cleanup.policy=delete"},
		"message.timestamp.type":         {"CreateTime", "LogAppendTime", "--add-config message.timestamp.type=LogAppendTime"},
		"unclean.leader.election.enable": {"true", "false", "--add-config unclean.leader.election.enable=false"},
		"max.message.bytes":              {"5000", "1000093", "--add-config max.message.bytes=1000093"},
	}
	for _, f := range unfit.Faults {
		w, ok := want[f.Setting]
		if !ok {
			t.Errorf("%s is no fault: %+v", f.Setting, f)
			continue
		}
		delete(want, f.Setting)
		if f.Found != w[0] || !strings.Contains(f.Needed, w[1]) || !strings.Contains(f.Remedy, w[2]) {
			t.Errorf("%+v, want %q", f, w)
		}
		if !strings.Contains(text, f.Setting) || !strings.Contains(text, f.Remedy) || !strings.Contains(text, opts.Topic) {
			t.Errorf("the error does not tell %s:\n%s", f.Setting, text)
		}
	}
	for setting := range want {
		t.Errorf("%s is not named", setting)
	}

	// What the remedies say is enough.
	alter(t, opts, "retention.ms", "-1", "retention.bytes", "-1", "cleanup.policy", "delete", "max.message.bytes", "1000093",
		"message.timestamp.type", "LogAppendTime", "unclean.leader.election.enable", "false")
	opts.Partitions, opts.Replication, opts.MinInsync = 2, 1, 1
	l := mustOpen(t, opts)
	mustAppend(t, l, 1, []byte("a"))
}

// TestBounds of what is fine, which the check above cannot show.
func TestTopicFaultsAtTheirLimits(t *testing.T) {
	l := &Log{opts: Options{Brokers: []string{"h:1"}, TopicOptions: TopicOptions{MinRetention: time.Hour, MinRetentionBytes: 100}, Limits: Limits{MaxRecordBytes: 1000}}.withDefaults()}
	topic := kgo.Topic{Partitions: []kgo.Partition{{Replicas: make([]kgo.Broker, 3)}, {Replicas: make([]kgo.Broker, 3)}}}
	good := map[string]string{
		setRetentionMS: "3600000", setRetentionBytes: "100", setCleanup: "delete", setTimestamps: "LogAppendTime",
		setUnclean: "false", setMinInsync: "2", setMaxMessage: "1093", setMaxRequest: "104857600",
	}
	if faults, batch := l.faults(topic, 3, good); len(faults) > 0 || batch != 1093 {
		t.Fatalf("%+v, %d", faults, batch)
	}
	for setting, value := range map[string]string{
		setRetentionMS: "3599999", setRetentionBytes: "99", setCleanup: "delete,compact", setTimestamps: "",
		setUnclean: "", setMinInsync: "4", setMaxMessage: "1092", setMaxRequest: "5000",
	} {
		bad := map[string]string{}
		for k, v := range good {
			bad[k] = v
		}
		bad[setting] = value
		faults, _ := l.faults(topic, 3, bad)
		if len(faults) != 1 || !strings.HasPrefix(faults[0].Setting, setting) {
			t.Errorf("%s=%q: %+v", setting, value, faults)
		}
	}
	// Two of three replicas, as with a partition that was made by hand.
	topic.Partitions[1].Replicas = make([]kgo.Broker, 2)
	if faults, _ := l.faults(topic, 3, good); len(faults) != 1 || faults[0].Found != "2" {
		t.Errorf("%+v", faults)
	}
}

// alter changes settings of the log's topic.
func alter(t testing.TB, opts Options, kv ...string) {
	t.Helper()
	transport := &kgo.Transport{}
	defer transport.CloseIdleConnections()
	client := &kgo.Client{Addr: kgo.TCP(opts.Brokers...), Transport: transport}
	var set []kgo.IncrementalAlterConfigsRequestConfig
	for _, c := range configs(kv...) {
		set = append(set, kgo.IncrementalAlterConfigsRequestConfig{Name: c.ConfigName, Value: c.ConfigValue, ConfigOperation: kgo.ConfigOperationSet})
	}
	res, err := client.IncrementalAlterConfigs(within(t, 20*time.Second), &kgo.IncrementalAlterConfigsRequest{
		Resources: []kgo.IncrementalAlterConfigsRequestResource{{ResourceType: kgo.ResourceTypeTopic, ResourceName: opts.Topic, Configs: set}},
	})
	if err == nil && len(res.Resources) == 1 {
		err = res.Resources[0].Error
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestReplicasThatCannotBe(t *testing.T) {
	opts := shared(t)
	opts.Replication = 9
	_, err := Open(within(t, 20*time.Second), opts)
	if err == nil || !strings.Contains(err.Error(), "9 replicas") || !strings.Contains(err.Error(), "kafka-topics.sh") {
		t.Fatal(err)
	}
}

// TestNoKafkaThere: what answers at the address is something else, or nothing.
func TestNoKafkaThere(t *testing.T) {
	for _, c := range []struct {
		name, want string
		serve      func(net.Conn)
	}{
		{"http", "is no Kafka broker", func(c net.Conn) { c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }},
		{"ends", "is no Kafka broker", func(c net.Conn) {}},
		{"silent", "deadline exceeded", func(c net.Conn) { io.Copy(io.Discard, c) }},
		{"names too much", "is no Kafka broker", func(c net.Conn) {
			c.Write([]byte{0, 0, 0, 10, 0x4d, 0x75, 0x73, 0x74, 0, 0, 0x7f, 0xff, 0xff, 0xff})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				conn.Read(make([]byte, 4096)) // what is not read is answered with a reset
				c.serve(conn)
				conn.Close()
			}()
			timeout := time.Minute // of those that answer
			if c.name == "silent" {
				timeout = 300 * time.Millisecond
			}
			_, err = Open(t.Context(), Options{Brokers: []string{ln.Addr().String()}, Timeouts: Timeouts{DialTimeout: timeout}})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), ln.Addr().String()) {
				t.Errorf("%v", err)
			}
			ln.Close()
			<-done
			if _, err := Open(context.Background(), Options{Brokers: []string{ln.Addr().String()}}); err == nil {
				t.Error("opened without a listener")
			}
		})
	}
}

// TestKnownTopicIsNotCreated: a topic that was there before and is gone is not created again by
// a start that is refused.
func TestKnownTopicIsNotCreated(t *testing.T) {
	opts := shared(t)
	opts.Known = true
	for range 2 {
		l, err := Open(within(t, 10*time.Second), opts)
		if err == nil {
			l.Close()
			t.Fatal("it was created")
		}
		if !strings.Contains(err.Error(), "It was there before: restore it") {
			t.Errorf("%v", err)
		}
	}
	opts.Known = false
	mustOpen(t, opts)
	opts.Known = true
	mustOpen(t, opts)
}
