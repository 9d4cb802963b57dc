package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/services"
)

// backing is Kafka and ClickHouse, with what the run makes in them.
type backing struct {
	brokers []string
	dsn     string
	client  *kgo.Client

	// Those that were started here; nil where they are shared.
	kafka      *services.KafkaCluster
	clickHouse *services.ClickHouseServer

	// prefix begins the names of everything that is made.
	prefix            string
	topics, databases []string
}

const adminTimeout = 30 * time.Second

// openBacking starts both, or finds those that run.
func openBacking(ctx context.Context, o Options) (b *backing, err error) {
	b = &backing{prefix: fmt.Sprintf("bench_%x_", time.Now().UnixNano())}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if o.Services == Own {
		if b.kafka, err = services.StartKafka(ctx, o.Dir, 1); err != nil {
			return b, fmt.Errorf("starting Kafka (`make services-up` installs it): %w", err)
		}
		if b.clickHouse, err = services.StartClickHouse(ctx, o.Dir); err != nil {
			return b, fmt.Errorf("starting ClickHouse (`make services-up` installs it): %w", err)
		}
		b.brokers, b.dsn = b.kafka.Addrs(), b.clickHouse.DSN()
	} else {
		found, err := services.Find()
		if err != nil {
			return b, err
		}
		if found.Kafka == "" || found.ClickHouse == "" {
			return b, fmt.Errorf("there are no shared services; run `make services-up`, set %s and %s, or use --services %s", services.EnvKafka, services.EnvClickHouse, Own)
		}
		b.brokers, b.dsn = strings.Split(found.Kafka, ","), found.ClickHouse
	}
	b.client = &kgo.Client{Addr: kgo.TCP(b.brokers...), Timeout: adminTimeout, Transport: &kgo.Transport{}}
	return b, nil
}

// topic names a new topic, which its first user makes.
func (b *backing) topic(name string) string {
	b.topics = append(b.topics, b.prefix+name)
	return b.prefix + name
}

// database names a new database, which its first user makes.
func (b *backing) database(name string) string {
	b.databases = append(b.databases, b.prefix+name)
	return b.prefix + name
}

// dsnOf is the address of a database.
func (b *backing) dsnOf(database string) (string, error) {
	u, err := url.Parse(b.dsn)
	if err != nil {
		return "", fmt.Errorf("ClickHouse's DSN: %w", err)
	}
	u.Path = "/" + database
	return u.String(), nil
}

// options are those of a database for clickhouse-go.
func (b *backing) options(database string) (*clickhouse.Options, error) {
	opt, err := clickhouse.ParseDSN(b.dsn)
	if err != nil {
		return nil, fmt.Errorf("ClickHouse's DSN: %w", err)
	}
	opt.Auth.Database, opt.DialTimeout, opt.ReadTimeout = database, 10*time.Second, 5*time.Minute
	return opt, nil
}

// with runs something in a database.
func (b *backing) with(database string, do func(*sql.DB) error) error {
	opt, err := b.options(database)
	if err != nil {
		return err
	}
	db := clickhouse.OpenDB(opt)
	return errors.Join(do(db), db.Close())
}

// makeTopic makes a topic for the bare client, as muster makes its own.
func (b *backing) makeTopic(ctx context.Context, name string, partitions int) error {
	res, err := b.client.CreateTopics(ctx, &kgo.CreateTopicsRequest{Topics: []kgo.TopicConfig{{
		Topic: name, NumPartitions: partitions, ReplicationFactor: 1,
		ConfigEntries: []kgo.ConfigEntry{{ConfigName: "max.message.bytes", ConfigValue: fmt.Sprint(32 << 20)}, {ConfigName: "retention.ms", ConfigValue: "-1"}},
	}}})
	if err == nil {
		err = res.Errors[name]
	}
	if err != nil {
		return fmt.Errorf("making the topic of bare records: %w", err)
	}
	return nil
}

// pids are those of Kafka and ClickHouse, none where they are shared.
func (b *backing) pids() (kafka, clickHouse []int) {
	if b.kafka != nil {
		kafka = b.kafka.PIDs()
	}
	if b.clickHouse != nil {
		clickHouse = []int{b.clickHouse.PID()}
	}
	return kafka, clickHouse
}

// close ends what was started, and removes what was made in what is shared.
func (b *backing) close() (err error) {
	if b.kafka == nil && b.client != nil {
		err = errors.Join(err, b.dropTopics())
	}
	if b.clickHouse == nil && b.dsn != "" {
		err = errors.Join(err, b.with("default", b.dropDatabases))
	}
	if b.client != nil {
		b.client.Transport.(*kgo.Transport).CloseIdleConnections()
	}
	if b.clickHouse != nil {
		err = errors.Join(err, b.clickHouse.Close())
	}
	if b.kafka != nil {
		err = errors.Join(err, b.kafka.Close())
	}
	return err
}

func (b *backing) dropTopics() error {
	if len(b.topics) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	res, err := b.client.DeleteTopics(ctx, &kgo.DeleteTopicsRequest{Topics: b.topics})
	if err != nil {
		return fmt.Errorf("deleting topics: %w", err)
	}
	for name, e := range res.Errors {
		if e != nil && !errors.Is(e, kgo.UnknownTopicOrPartition) {
			err = errors.Join(err, fmt.Errorf("deleting topic %s: %w", name, e))
		}
	}
	return err
}

func (b *backing) dropDatabases(db *sql.DB) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	for _, name := range b.databases {
		if _, e := db.ExecContext(ctx, "DROP DATABASE IF EXISTS `"+name+"` SYNC"); e != nil {
			err = errors.Join(err, fmt.Errorf("dropping database %s: %w", name, e))
		}
	}
	return err
}
