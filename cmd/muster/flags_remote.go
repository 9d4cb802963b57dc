package main

import (
	"crypto/tls"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/eventlog/kafka"
	"github.com/musterhq/muster/query/clickhouse"
)

// remoteFlags say that the log is in Kafka, or history in ClickHouse.
type remoteFlags struct {
	brokers, topic, sasl, user, password, compression *string
	tls                                               *bool
	replication, partitions                           *int
	dsn                                               *string
	ttlDays                                           *int
	session                                           *time.Duration
}

func (r *remoteFlags) add(f *cli.Flags) {
	r.brokers = f.String("kafka", "", "Apache Kafka `BROKERS` for the log, as HOST:PORT,HOST:PORT; without them the log is in --data. Requires --clickhouse")
	r.topic = f.String("kafka-topic", kafka.DefaultTopic, "topic `NAME` of the log; created if it does not exist")
	r.replication = f.Int("kafka-replication", 0, "replication `FACTOR` of a new topic, and the minimum for an existing one; 0: 3, or the number of brokers if smaller")
	f.Range("kafka-replication", 0, 32767)
	r.partitions = f.Int("kafka-partitions", 0, "`NUMBER` of partitions of the log, fixed when the topic is created; 0: as the topic has, and for a new topic 6 with --cluster-secret, else 1")
	f.Range("kafka-partitions", 0, 4096)
	r.compression = f.String("kafka-compression", "none", "record compression `CODEC`: none, lz4, zstd, snappy or gzip")
	r.tls = f.Bool("kafka-tls", false, "connect to the brokers with TLS; the system (or SSL_CERT_FILE) must trust their certificates")
	r.sasl = f.String("kafka-sasl", "", "SASL `MECHANISM`: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	r.user = f.String("kafka-user", "", "user `NAME` for SASL")
	r.password = f.String("kafka-password", "", "`PASSWORD` for SASL; better set as MUSTER_KAFKA_PASSWORD")
	r.session = f.Duration("kafka-session-timeout", cluster.DefaultSessionTimeout, "session timeout: `TIME` without contact after which other nodes take over this node's partitions; brokers allow 6 s to 30 min")
	f.Range("kafka-session-timeout", int64(time.Second), int64(mostTime))
	r.dsn = f.String("clickhouse", "", "`DSN` of the ClickHouse server for history, clickhouse://USER:PASSWORD@HOST:9000/DATABASE; without it history is in --data")
	r.ttlDays = f.Int("clickhouse-ttl-days", 0, "`DAYS` after which ClickHouse deletes events from history, by event time; 0: never")
	f.Range("clickhouse-ttl-days", 0, 7300)
}

// kafkaFlags names flags in what kafka.Options says of its fields.
var kafkaFlags = strings.NewReplacer("option Brokers", "--kafka", "option Topic", "--kafka-topic", "option SASL", "--kafka-sasl")

// oneOf refuses a value that is none of those allowed; "" among them is not shown.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	allowed = slices.DeleteFunc(allowed, func(s string) bool { return s == "" })
	last := len(allowed) - 1
	return wrongUsage("--%s is %q; use %s or %s", flag, value, strings.Join(allowed[:last], ", "), allowed[last])
}

// read returns nil for what stays in --data.
func (r *remoteFlags) read() (*kafka.Options, *clickhouse.Options, error) {
	if err := oneOf("kafka-compression", *r.compression, "none", "lz4", "zstd", "snappy", "gzip"); err != nil {
		return nil, nil, err
	}
	if err := oneOf("kafka-sasl", *r.sasl, "", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"); err != nil {
		return nil, nil, err
	}
	var history *clickhouse.Options
	switch {
	case *r.dsn != "":
		history = &clickhouse.Options{DSN: *r.dsn, TTLDays: *r.ttlDays}
	case *r.ttlDays != 0:
		return nil, nil, wrongUsage("--clickhouse-ttl-days needs --clickhouse")
	}
	if *r.brokers == "" {
		return nil, history, nil
	}
	if history == nil {
		return nil, nil, wrongUsage("--kafka needs --clickhouse: what is kept in --data is lost to a node that takes over elsewhere. Name a ClickHouse, such as --clickhouse clickhouse://localhost:9000/muster")
	}
	k := &kafka.Options{TopicOptions: kafka.TopicOptions{Topic: *r.topic, Partitions: *r.partitions, Replication: *r.replication}, Compression: *r.compression}
	for _, addr := range strings.Split(*r.brokers, ",") {
		k.Brokers = append(k.Brokers, strings.TrimSpace(addr))
	}
	if *r.tls {
		k.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	switch {
	case *r.sasl != "":
		k.SASL = &kafka.SASL{Mechanism: *r.sasl, Username: *r.user, Password: *r.password}
	case *r.user != "" || *r.password != "":
		return nil, nil, wrongUsage("--kafka-user and --kafka-password need --kafka-sasl, such as SCRAM-SHA-512")
	}
	if err := k.Validate(); err != nil {
		return nil, nil, wrongUsage("%s", kafkaFlags.Replace(err.Error()))
	}
	return k, history, nil
}
