package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/pause"
)

// Settings of a topic, by Kafka's names.
const (
	setRetentionMS    = "retention.ms"
	setRetentionBytes = "retention.bytes"
	setCleanup        = "cleanup.policy"
	setMaxMessage     = "max.message.bytes"
	setTimestamps     = "message.timestamp.type"
	setMinInsync      = "min.insync.replicas"
	setUnclean        = "unclean.leader.election.enable"
	// setMaxRequest is a broker's. message.max.bytes, a broker's too, is only
	// what max.message.bytes is where the topic does not set it.
	setMaxRequest = "socket.request.max.bytes"
)

// openPatience bounds how long Open waits for brokers that are there and not
// ready.
const openPatience = 30 * time.Second

// requestRoom is what a produce request takes beside its batch, generously.
const requestRoom = 4 << 10

// metadata returns the topic as kafka-go sees it at present.
func (l *Log) metadata(ctx context.Context) (kgo.Topic, error) {
	topic, _, err := l.cluster(ctx)
	return topic, err
}

func (l *Log) cluster(ctx context.Context) (kgo.Topic, []kgo.Broker, error) {
	res, err := l.client.Metadata(ctx, &kgo.MetadataRequest{Topics: []string{l.opts.Topic}})
	if err != nil {
		return kgo.Topic{}, nil, err
	}
	if len(res.Topics) != 1 || res.Topics[0].Name != l.opts.Topic {
		return kgo.Topic{}, res.Brokers, fmt.Errorf("%w: metadata does not name the topic", errMalformed)
	}
	return res.Topics[0], res.Brokers, res.Topics[0].Error
}

// topic returns the topic, creates it when there is none, and checks that it
// suits. Brokers that cannot say yet are asked again for openPatience.
func (l *Log) topic(ctx context.Context) (kgo.Topic, error) {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	var wait backoff
	var made bool
	for {
		topic, brokers, err := l.cluster(ctx)
		switch {
		case !errors.Is(err, kgo.UnknownTopicOrPartition) || made:
		case l.opts.Known:
			err = fmt.Errorf("%w. It was there before: restore it, or name another topic with --kafka-topic and another directory with --data", err)
		default:
			if err = l.create(ctx, len(brokers)); err == nil {
				made = true
				continue
			}
		}
		if err == nil {
			err = whole(topic)
		}
		if err == nil {
			err = l.check(ctx, topic, brokers)
		}
		if err == nil {
			return topic, nil
		}
		var unfit *TopicError
		if errors.As(err, &unfit) || refused(err) || errors.Is(err, errCreate) {
			return kgo.Topic{}, err
		}
		if pause.For(ctx, wait.step()) != nil {
			if l.sasl == nil && errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w (does the broker ask for SASL?)", err)
			}
			return kgo.Topic{}, fmt.Errorf("topic %s: %w", l.opts.Topic, err)
		}
	}
}

// whole fails while the topic's partitions are not all known.
func whole(topic kgo.Topic) error {
	seen := make(map[int]bool)
	for _, p := range topic.Partitions {
		seen[p.ID] = true
	}
	for i := range topic.Partitions {
		if !seen[i] {
			return fmt.Errorf("%w: partition %d is not among its %d", errMalformed, i, len(topic.Partitions))
		}
	}
	if len(seen) == 0 {
		return fmt.Errorf("%w: it has no partitions", errMalformed)
	}
	return nil
}

// errCreate: Kafka does not create the topic.
var errCreate = errors.New("it does not exist and Kafka does not create it")

// create makes the topic. brokers is how many there are.
func (l *Log) create(ctx context.Context, brokers int) error {
	o := &l.opts
	partitions := cmp.Or(o.Partitions, o.NewPartitions, DefaultPartitions)
	replicas := l.replication(brokers)
	config := []kgo.ConfigEntry{
		{ConfigName: setMinInsync, ConfigValue: strconv.Itoa(l.minInsync(replicas))},
		{ConfigName: setMaxMessage, ConfigValue: strconv.Itoa(max(l.messageBytes(), maxBatchBytes))},
		{ConfigName: setRetentionMS, ConfigValue: strconv.Itoa(keepForever)},
		{ConfigName: setRetentionBytes, ConfigValue: strconv.Itoa(keepForever)},
		{ConfigName: setCleanup, ConfigValue: "delete"},
		{ConfigName: setTimestamps, ConfigValue: "LogAppendTime"},
		{ConfigName: setUnclean, ConfigValue: "false"},
	}
	res, err := l.client.CreateTopics(ctx, &kgo.CreateTopicsRequest{Topics: []kgo.TopicConfig{{
		Topic: o.Topic, NumPartitions: partitions, ReplicationFactor: replicas, ConfigEntries: config,
	}}})
	if err == nil {
		err = res.Errors[o.Topic]
	}
	switch {
	case errors.Is(err, kgo.TopicAlreadyExists):
		// Another node was first.
		return nil
	case errors.Is(err, kgo.InvalidReplicationFactor), errors.Is(err, kgo.TopicAuthorizationFailed),
		errors.Is(err, kgo.ClusterAuthorizationFailed), errors.Is(err, kgo.PolicyViolation),
		errors.Is(err, kgo.InvalidConfiguration), errors.Is(err, kgo.InvalidPartitionNumber):
		var flags strings.Builder
		for _, c := range config {
			fmt.Fprintf(&flags, " --config %s=%s", c.ConfigName, c.ConfigValue)
		}
		return fmt.Errorf("topic %s: %w with %d partitions and %d replicas: %w; create it: kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions %d --replication-factor %d%s",
			o.Topic, errCreate, partitions, replicas, err, o.Brokers[0], o.Topic, partitions, replicas, flags.String())
	case err != nil:
		return err
	}
	o.Logger.Info("created the topic of the log", "topic", o.Topic, "partitions", partitions, "replicas", replicas)
	return nil
}

func (l *Log) replication(brokers int) int {
	if l.opts.Replication > 0 {
		return l.opts.Replication
	}
	return max(1, min(3, brokers))
}

func (l *Log) minInsync(replicas int) int {
	if l.opts.MinInsync > 0 {
		return l.opts.MinInsync
	}
	return replicas/2 + 1
}

// messageBytes is the least max.message.bytes: the largest record, alone in a
// batch. Smaller records share batches of up to maxBatchBytes when that allows.
func (l *Log) messageBytes() int { return l.opts.MaxRecordBytes + batchHeaderSize + maxFraming }

// check compares the topic with what is needed and returns all that does not
// suit as one [*TopicError].
func (l *Log) check(ctx context.Context, topic kgo.Topic, brokers []kgo.Broker) error {
	resources := []kgo.DescribeConfigRequestResource{{
		ResourceType: kgo.ResourceTypeTopic, ResourceName: l.opts.Topic,
		ConfigNames: []string{setRetentionMS, setRetentionBytes, setCleanup, setMaxMessage, setTimestamps, setMinInsync, setUnclean},
	}}
	for _, b := range brokers {
		resources = append(resources, kgo.DescribeConfigRequestResource{
			ResourceType: kgo.ResourceTypeBroker, ResourceName: strconv.Itoa(b.ID), ConfigNames: []string{setMaxRequest},
		})
	}
	res, err := l.client.DescribeConfigs(ctx, &kgo.DescribeConfigsRequest{Resources: resources})
	if err != nil {
		return err
	}
	found := map[string]string{}
	for _, r := range res.Resources {
		if r.Error != nil {
			return fmt.Errorf("read the settings of %s: %w", r.ResourceName, r.Error)
		}
		for _, c := range r.ConfigEntries {
			switch {
			case r.ResourceType == int8(kgo.ResourceTypeTopic):
				found[c.ConfigName] = c.ConfigValue
			case c.ConfigName == setMaxRequest:
				// The smallest of all brokers counts.
				if n, err := strconv.ParseInt(c.ConfigValue, 10, 64); err == nil && (found[setMaxRequest] == "" || n < number(found, setMaxRequest)) {
					found[setMaxRequest] = c.ConfigValue
				}
			}
		}
	}
	faults, batchBytes := l.faults(topic, len(brokers), found)
	if len(faults) > 0 {
		return &TopicError{Topic: l.opts.Topic, Faults: faults}
	}
	l.batchBytes = batchBytes
	return nil
}

// number reads a setting; one that cannot be read is 0, which suits nothing.
func number(found map[string]string, name string) int64 {
	n, err := strconv.ParseInt(found[name], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// faults judges what was found. Without faults it returns the largest batch
// the topic takes.
func (l *Log) faults(topic kgo.Topic, brokers int, found map[string]string) (faults []Fault, batchBytes int) {
	o := &l.opts
	add := func(setting, found, needed, remedy string) {
		if found == "" {
			found = "not told by the brokers"
		}
		faults = append(faults, Fault{Setting: setting, Found: found, Needed: needed, Remedy: remedy})
	}
	set := func(setting, value string) string {
		return fmt.Sprintf("kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s=%s",
			o.Brokers[0], o.Topic, setting, value)
	}

	if n := len(topic.Partitions); o.Partitions > 0 && n != o.Partitions {
		add("the number of partitions", strconv.Itoa(n), strconv.Itoa(o.Partitions),
			fmt.Sprintf("it is fixed when a log is made; open it with %d, or name another topic", n))
	}
	needed := l.replication(brokers)
	replicas := len(topic.Partitions[0].Replicas)
	for _, p := range topic.Partitions {
		replicas = min(replicas, len(p.Replicas))
	}
	if replicas < needed {
		add("the number of replicas", strconv.Itoa(replicas), fmt.Sprintf("at least %d", needed),
			"add replicas with kafka-reassign-partitions.sh, or name another topic")
	}
	insync, least := number(found, setMinInsync), int64(l.minInsync(max(replicas, needed)))
	switch {
	case insync < least:
		add(setMinInsync, found[setMinInsync], fmt.Sprintf("at least %d", least), set(setMinInsync, strconv.FormatInt(least, 10)))
	case insync > int64(replicas):
		add(setMinInsync, found[setMinInsync], fmt.Sprintf("at most the number of replicas, %d: more can never be in sync", replicas),
			set(setMinInsync, strconv.FormatInt(least, 10)))
	case insync == int64(replicas) && replicas > 1:
		o.Logger.Warn("appends stop when any broker with a replica is lost: min.insync.replicas is the number of replicas", "topic", o.Topic, "replicas", replicas)
	}
	if v := number(found, setRetentionMS); v != keepForever && v < o.MinRetention.Milliseconds() {
		add(setRetentionMS, withDuration(found[setRetentionMS], v),
			fmt.Sprintf("%d (without a bound) or at least %d (%v): a start replays what came after the oldest checkpoint", keepForever, o.MinRetention.Milliseconds(), o.MinRetention),
			set(setRetentionMS, strconv.Itoa(keepForever)))
	}
	if v := number(found, setRetentionBytes); v != keepForever && (o.MinRetentionBytes == 0 || v < o.MinRetentionBytes) {
		needed := fmt.Sprintf("%d (without a bound)", keepForever)
		if o.MinRetentionBytes > 0 {
			needed += fmt.Sprintf(" or at least %d", o.MinRetentionBytes)
		}
		add(setRetentionBytes, found[setRetentionBytes], needed, set(setRetentionBytes, strconv.Itoa(keepForever)))
	}
	for _, c := range []struct{ setting, needed, why string }{
		{setCleanup, "delete", "compaction removes records"},
		{setTimestamps, "LogAppendTime", "retention counts from the append"},
		{setUnclean, "false", "acknowledged records could be lost"},
	} {
		if found[c.setting] != c.needed {
			add(c.setting, found[c.setting], c.needed+" ("+c.why+" otherwise)", set(c.setting, c.needed))
		}
	}
	message := number(found, setMaxMessage)
	if least := int64(l.messageBytes()); message < least {
		add(setMaxMessage, found[setMaxMessage], fmt.Sprintf("at least %d (records of up to %d bytes)", least, o.MaxRecordBytes),
			set(setMaxMessage, strconv.FormatInt(least, 10)))
	}
	request := number(found, setMaxRequest)
	if least := int64(l.messageBytes() + requestRoom); request < least {
		add(setMaxRequest+" of a broker", found[setMaxRequest], fmt.Sprintf("at least %d", least), "raise it in the brokers' server.properties and restart them")
	}
	return faults, int(min(message, request-requestRoom, MostRecordBytes+requestRoom))
}

func withDuration(value string, ms int64) string {
	if ms <= 0 {
		return value
	}
	return fmt.Sprintf("%s (%v)", value, time.Duration(ms)*time.Millisecond)
}

// watchLeaders keeps the partitions' leaders up to date until the log ends.
func (l *Log) watchLeaders() {
	for pause.For(l.ctx, watchEvery) == nil {
		topic, err := l.metadata(l.ctx)
		if err == nil {
			l.learn(topic)
		}
	}
}

// learn notes the leaders of the topic's partitions.
func (l *Log) learn(topic kgo.Topic) {
	for _, at := range topic.Partitions {
		if at.ID < 0 || at.ID >= len(l.partitions) {
			continue
		}
		p := l.partitions[at.ID]
		if p.leader.set(at.Leader) {
			p.counters.leaderChanges.Add(1)
			l.opts.Logger.Debug("partition has another leader", "topic", l.opts.Topic, "partition", p.id, "broker", at.Leader.ID)
		}
	}
}
