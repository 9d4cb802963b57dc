package kafka

import (
	"context"
	"errors"
	"fmt"

	kgo "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
)

// Mechanism returns what authenticates connections, nil without [Options.SASL],
// for others who talk to the same brokers.
func (o Options) Mechanism() (sasl.Mechanism, error) { return o.SASL.mechanism() }

// ClusterID asks for the id of the Kafka cluster. With the topic's name it
// identifies a log.
func (l *Log) ClusterID(ctx context.Context) (string, error) {
	ctx, cancel := l.opts.within(ctx)
	defer cancel()
	res, err := l.client.Metadata(ctx, &kgo.MetadataRequest{Topics: []string{l.opts.Topic}})
	switch {
	case err != nil:
		return "", fmt.Errorf("ask for the cluster's id: %w", err)
	case res.ClusterID == "":
		return "", errors.New("the brokers do not tell their cluster's id; Kafka 0.10.1 and later do")
	}
	return res.ClusterID, nil
}

// Topic is the name of the topic that holds the log.
func (l *Log) Topic() string { return l.opts.Topic }
