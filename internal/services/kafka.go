package services

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/pause"
)

// KafkaCluster is an Apache Kafka cluster of this process's own. Every broker
// is a KRaft controller, too. Ports and data stay the same across restarts.
type KafkaCluster struct {
	brokers []*broker
}

type broker struct {
	*process
	addr string
}

// Doors are further ways into each broker: clients who come through one are told
// to stay with it, and may so be led through a proxy of their own.
type Doors struct {
	// Count is how many doors each broker has.
	Count int
	// Advertise returns the address, HOST:PORT, that clients of a door are told
	// instead of the one it listens at. It is called before the broker starts.
	Advertise func(broker, door int, listens string) (string, error)
}

// door is one of a broker's: where it listens, and what its clients are told.
type door struct{ listens, advertised string }

// StartKafka starts a cluster of 1 or 3 brokers that keep their data below dir,
// and returns when all of them serve. The caller ends it with Close; it ends
// with the process at the latest. The error wraps [ErrMissing] when Kafka is
// not installed.
func StartKafka(ctx context.Context, dir string, brokers int) (*KafkaCluster, error) {
	return StartKafkaWithDoors(ctx, dir, brokers, Doors{})
}

// StartKafkaWithDoors is [StartKafka] with further ways into each broker.
func StartKafkaWithDoors(ctx context.Context, dir string, brokers int, doors Doors) (*KafkaCluster, error) {
	in, err := newInstaller(false, nil)
	if err != nil {
		return nil, err
	}
	c, err := newKafka(ctx, in, dir, brokers, doors, ownLimits, false)
	if err != nil {
		return nil, err
	}
	for _, b := range c.brokers {
		if err := b.start(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	for i := range c.brokers {
		if err := c.waitServing(ctx, i, brokers); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// newKafka writes the configuration and formats the storage; nothing runs yet.
func newKafka(ctx context.Context, in *installer, dir string, brokers int, doors Doors, lim limits, detach bool) (*KafkaCluster, error) {
	if brokers != 1 && brokers != 3 {
		return nil, fmt.Errorf("a Kafka cluster has 1 or 3 brokers here, not %d", brokers)
	}
	jars, err := in.kafkaJars(ctx)
	if err != nil {
		return nil, err
	}
	storage, err := in.kafkaStorage(ctx)
	if err != nil {
		return nil, err
	}
	java, err := look("java")
	if err != nil {
		return nil, err
	}
	ports, err := FreePorts((2 + doors.Count) * brokers)
	if err != nil {
		return nil, err
	}
	client, controller, more := ports[:brokers], ports[brokers:2*brokers], ports[2*brokers:]
	classes := filepath.Join(jars, "*")
	flags := javaFlags(lim)
	if lim.saveClasses == "" {
		flags = append(flags, in.classesFlag(java)...)
	}
	c, cluster := &KafkaCluster{}, kafkaID()
	for i := range brokers {
		home := filepath.Join(dir, "kafka-"+strconv.Itoa(i))
		leading := make([]door, doors.Count)
		for d := range leading {
			leading[d].listens = loopback(more[i*doors.Count+d])
			if leading[d].advertised, err = doors.Advertise(i, d, leading[d].listens); err != nil {
				return nil, err
			}
		}
		conf, err := writeIn(home, "server.properties", brokerProperties(home, i, client, controller, leading))
		if err != nil {
			return nil, err
		}
		if err := formatLike(storage, filepath.Join(home, "data"), cluster, i); err != nil {
			return nil, fmt.Errorf("format the storage of Kafka's broker %d: %w", i, err)
		}
		argv := append([]string{java}, flags...)
		argv = append(argv, "-cp", classes, "kafka.Kafka", conf)
		c.brokers = append(c.brokers, &broker{
			addr: loopback(client[i]),
			process: &process{
				name: fmt.Sprintf("Kafka's broker %d", i), argv: argv, dir: home,
				logPath: filepath.Join(home, "log"), detach: detach,
			},
		})
	}
	return c, nil
}

func javaFlags(lim limits) []string {
	flags := []string{
		"-Xms64m", fmt.Sprintf("-Xmx%dm", lim.heap), "-XX:+UseSerialGC", "-XX:MaxMetaspaceSize=128m",
		"-XX:MaxDirectMemorySize=128m", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
	}
	if lim.quickStart {
		flags = append(flags, "-XX:TieredStopAtLevel=1")
	}
	if lim.saveClasses != "" {
		flags = append(flags, "-XX:ArchiveClassesAtExit="+lim.saveClasses, "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
	}
	return flags
}

// brokerProperties is a broker's configuration. Ids are 0 to n-1. Sizes are
// those of a small machine; timeouts are short, so that a test sees a dead
// broker fenced after three seconds rather than nine. What clients can notice
// is left at Kafka's defaults otherwise, message.max.bytes among it.
func brokerProperties(home string, id int, client, controller []int, doors []door) string {
	n := len(client)
	var voters []string
	for i, port := range controller {
		voters = append(voters, fmt.Sprintf("%d@%s", i, loopback(port)))
	}
	listeners := fmt.Sprintf("BROKER://%s,CONTROLLER://%s", loopback(client[id]), loopback(controller[id]))
	advertised, protocols := "BROKER://"+loopback(client[id]), "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT"
	for i, d := range doors {
		listeners += fmt.Sprintf(",DOOR%d://%s", i, d.listens)
		advertised += fmt.Sprintf(",DOOR%d://%s", i, d.advertised)
		protocols += fmt.Sprintf(",DOOR%d:PLAINTEXT", i)
	}
	lines := []string{
		"process.roles=broker,controller",
		fmt.Sprintf("node.id=%d", id),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"listeners=" + listeners,
		"advertised.listeners=" + advertised,
		"listener.security.protocol.map=" + protocols,
		"inter.broker.listener.name=BROKER",
		"controller.listener.names=CONTROLLER",
		"log.dirs=" + filepath.Join(home, "data"),

		// A topic that was not created is a mistake that tests shall see.
		"auto.create.topics.enable=false",
		fmt.Sprintf("default.replication.factor=%d", n),
		fmt.Sprintf("min.insync.replicas=%d", n/2+1),
		fmt.Sprintf("offsets.topic.replication.factor=%d", n),
		fmt.Sprintf("transaction.state.log.replication.factor=%d", n),
		fmt.Sprintf("transaction.state.log.min.isr=%d", n/2+1),
		"offsets.topic.num.partitions=4",
		"transaction.state.log.num.partitions=4",
		"share.coordinator.state.topic.num.partitions=1",
		fmt.Sprintf("share.coordinator.state.topic.replication.factor=%d", n),

		"group.initial.rebalance.delay.ms=0",
		"group.min.session.timeout.ms=1000",
		"broker.heartbeat.interval.ms=500",
		"broker.session.timeout.ms=3000",
		"controlled.shutdown.max.retries=3",
		"replica.lag.time.max.ms=5000",
		"log.segment.delete.delay.ms=1000",

		"num.network.threads=2",
		"num.io.threads=4",
		"num.recovery.threads.per.data.dir=2",
		"background.threads=2",
		"log.cleaner.threads=1",
		"log.cleaner.dedupe.buffer.size=16777216",
	}
	return strings.Join(lines, "\n") + "\n"
}

// Addrs returns the brokers' addresses, HOST:PORT, in the order of their numbers.
func (c *KafkaCluster) Addrs() []string {
	addrs := make([]string, len(c.brokers))
	for i, b := range c.brokers {
		addrs[i] = b.addr
	}
	return addrs
}

// PIDs returns the process ids of the brokers' present processes.
func (c *KafkaCluster) PIDs() []int {
	pids := make([]int, len(c.brokers))
	for i, b := range c.brokers {
		pids[i] = b.pid()
	}
	return pids
}

// Stop ends broker i as an operator would: it hands its leaderships over first.
// It is killed when it takes more than 15 seconds.
func (c *KafkaCluster) Stop(i int) error { return c.brokers[i].stop(stopGrace) }

// Kill ends broker i with SIGKILL, and returns when it is gone.
func (c *KafkaCluster) Kill(i int) error { return c.brokers[i].kill() }

// Freeze stops broker i's time with SIGSTOP: connections stay, nothing is answered.
func (c *KafkaCluster) Freeze(i int) error { return c.brokers[i].freeze() }

// Thaw ends Freeze.
func (c *KafkaCluster) Thaw(i int) error { return c.brokers[i].thaw() }

// Restart starts broker i again after Stop or Kill, and stops it first when it
// runs. It returns when the broker serves, which takes a majority of all
// brokers.
func (c *KafkaCluster) Restart(ctx context.Context, i int) error {
	if err := c.Stop(i); err != nil {
		return err
	}
	if err := c.brokers[i].start(); err != nil {
		return err
	}
	return c.waitServing(ctx, i, 1)
}

// Close kills all brokers. It may be called more than once.
func (c *KafkaCluster) Close() error {
	var errs []error
	for _, b := range c.brokers {
		errs = append(errs, b.kill())
	}
	return errors.Join(errs...)
}

// WaitBrokers waits until n brokers agree that at least n are among the living:
// one alone may have been frozen and tell of the past. A new leader for what a
// dead broker led is elected when the living do not count it any more.
func (c *KafkaCluster) WaitBrokers(ctx context.Context, n int) error {
	for {
		var errs []error
		agree := 0
		for i, b := range c.brokers {
			try, cancel := context.WithTimeout(ctx, time.Second)
			live, err := liveBrokers(try, b.addr)
			cancel()
			switch {
			case err != nil:
				errs = append(errs, err)
			case len(live) < n:
				errs = append(errs, fmt.Errorf("broker %d knows %d", i, len(live)))
			default:
				agree++
			}
		}
		if agree >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("Kafka has fewer than %d brokers: %w: %w", n, ctx.Err(), errors.Join(errs...))
		case <-time.After(pollEvery):
		}
	}
}

// waitServing waits until broker i itself says that it and n brokers in all serve.
func (c *KafkaCluster) waitServing(ctx context.Context, i, n int) error {
	b := c.brokers[i]
	return waitReady(ctx, b.process, func(ctx context.Context) error {
		live, err := liveBrokers(ctx, b.addr)
		if err != nil {
			return err
		}
		if len(live) < n || !live[i] {
			return fmt.Errorf("the cluster has brokers %v, want %d with %d", live, n, i)
		}
		return nil
	})
}

// Leader returns the number of the broker that leads the partition. It waits
// until all brokers that answer name the same one and that one answers too: one
// that was frozen tells of the past for a moment, and those that are left do
// not know at once that the leader is dead.
func (c *KafkaCluster) Leader(ctx context.Context, topic string, partition int) (int, error) {
	for {
		var errs []error
		named, answered := map[int]bool{}, map[int]bool{}
		leader := 0
		for i, b := range c.brokers {
			by, err := leaderBy(ctx, b.addr, topic, partition)
			if err != nil {
				errs = append(errs, fmt.Errorf("broker %d: %w", i, err))
				continue
			}
			leader = by
			named[by], answered[i] = true, true
		}
		if len(named) == 1 && answered[leader] {
			return leader, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("leader of %s/%d: brokers named %v: %w: %w", topic, partition, slices.Sorted(maps.Keys(named)), ctx.Err(), errors.Join(errs...))
		case <-time.After(pollEvery):
		}
	}
}

func leaderBy(ctx context.Context, addr, topic string, partition int) (leader int, err error) {
	// One that is frozen takes connections and says nothing.
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err = ask(ctx, addr, func(conn *kafka.Conn) error {
		partitions, err := conn.ReadPartitions(topic)
		if err != nil {
			return err
		}
		for _, p := range partitions {
			if p.ID == partition && p.Leader.Host != "" {
				leader = p.Leader.ID
				return nil
			}
		}
		return errors.New("there is none")
	})
	return leader, err
}

// liveBrokers asks the broker at addr for the ids of all that are not fenced.
func liveBrokers(ctx context.Context, addr string) (map[int]bool, error) {
	live := map[int]bool{}
	err := ask(ctx, addr, func(conn *kafka.Conn) error {
		brokers, err := conn.Brokers()
		for _, b := range brokers {
			live[b.ID] = true
		}
		return err
	})
	return live, err
}

// ask connects to the one broker at addr. It fails at once, or when ctx ends,
// where kafka-go's client would try on and ask any of the brokers it knows.
func ask(ctx context.Context, addr string, do func(*kafka.Conn) error) error {
	conn, err := kafka.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return errors.Join(do(conn), conn.Close())
}

// kafkaClient returns a client with connections of its own: kafka-go's shared
// transport remembers a cluster that was at the address before.
func kafkaClient(addrs ...string) (client *kafka.Client, done func()) {
	transport := &kafka.Transport{DialTimeout: 2 * time.Second, MetadataTTL: time.Second}
	return &kafka.Client{Addr: kafka.TCP(addrs...), Transport: transport, Timeout: 15 * time.Second},
		transport.CloseIdleConnections
}

// CreateTopic creates a topic and returns when every broker names a leader of each of its
// partitions. Config's entries are Kafka's own, such as max.message.bytes.
func (c *KafkaCluster) CreateTopic(ctx context.Context, name string, partitions, replicas int, config ...kafka.ConfigEntry) error {
	return createTopic(ctx, c.Addrs(), name, partitions, replicas, config)
}

func createTopic(ctx context.Context, addrs []string, name string, partitions, replicas int, config []kafka.ConfigEntry) error {
	client, done := kafkaClient(addrs...)
	defer done()
	res, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: name, NumPartitions: partitions, ReplicationFactor: replicas, ConfigEntries: config,
	}}})
	if err == nil {
		err = res.Errors[name]
	}
	if err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	// Each is asked, because one learns of a topic later than another, and a client that
	// asks that one is told that there is no such topic.
	for _, addr := range addrs {
		for {
			err := leaders(ctx, addr, name, partitions)
			if err == nil {
				break
			}
			if pause.For(ctx, pollEvery) != nil {
				return fmt.Errorf("topic %s at %s: %w: %w", name, addr, ctx.Err(), err)
			}
		}
	}
	return nil
}

// leaders fails unless the broker at addr names a leader of every partition of the topic.
func leaders(ctx context.Context, addr, name string, partitions int) error {
	return ask(ctx, addr, func(conn *kafka.Conn) error {
		known, err := conn.ReadPartitions(name)
		if err != nil {
			return err
		}
		if len(known) != partitions {
			return fmt.Errorf("%d of %d partitions are known", len(known), partitions)
		}
		for _, p := range known {
			if p.Error != nil {
				return p.Error
			}
			if p.Leader.Host == "" {
				return fmt.Errorf("partition %d has no leader", p.ID)
			}
		}
		return nil
	})
}

// dropTopics deletes the topics whose names begin with prefix.
func dropTopics(ctx context.Context, addrs []string, prefix string) error {
	client, done := kafkaClient(addrs...)
	defer done()
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return err
	}
	var names []string
	for _, topic := range meta.Topics {
		if strings.HasPrefix(topic.Name, prefix) {
			names = append(names, topic.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	res, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: names})
	if err != nil {
		return err
	}
	var errs []error
	for _, err := range res.Errors {
		if err != nil && !errors.Is(err, kafka.UnknownTopicOrPartition) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// splitAddrs reads "HOST:PORT,HOST:PORT".
func splitAddrs(list string) ([]string, error) {
	var addrs []string
	for addr := range strings.SplitSeq(list, ",") {
		addr = strings.TrimSpace(addr)
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, fmt.Errorf("address of Kafka %q is not HOST:PORT: %w", addr, err)
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}
