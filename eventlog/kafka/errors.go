package kafka

import (
	"errors"
	"fmt"
	"strings"
	"time"

	kgo "github.com/segmentio/kafka-go"
)

// errLeaderChanged ends what waits for a broker that does not lead any more.
var errLeaderChanged = errors.New("the partition has another leader")

// errNoLeader: the partition has no leader at present.
var errNoLeader = errors.New("the partition has no leader")

// refused reports whether an error of Kafka does not pass by waiting. The record
// was not stored.
func refused(err error) bool {
	var code kgo.Error
	if !errors.As(err, &code) {
		return false
	}
	switch code {
	case kgo.MessageSizeTooLarge, kgo.RecordListTooLarge, kgo.InvalidTopic, kgo.InvalidRequiredAcks,
		kgo.TopicAuthorizationFailed, kgo.ClusterAuthorizationFailed, kgo.UnsupportedForMessageFormat,
		kgo.PolicyViolation, kgo.InvalidRecord:
		return true
	}
	return false
}

// TopicError says what of a topic does not suit Muster: all of it at once.
type TopicError struct {
	Topic  string
	Faults []Fault
}

// Fault is one setting that does not suit.
type Fault struct {
	// Setting is Kafka's name for it.
	Setting string
	// Found and Needed are values, or say what they are.
	Found, Needed string
	// Remedy is a command, or what else to do.
	Remedy string
}

func (e *TopicError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kafka's topic %s does not suit:", e.Topic)
	for _, f := range e.Faults {
		fmt.Fprintf(&b, "\n- %s is %s, needed is %s: %s", f.Setting, f.Found, f.Needed, f.Remedy)
	}
	return b.String()
}

// backoff spaces repetitions: 20 ms, doubled up to a second.
type backoff struct{ next time.Duration }

func (b *backoff) step() time.Duration {
	d := max(b.next, 20*time.Millisecond)
	b.next = min(2*d, time.Second)
	return d
}

func (b *backoff) reset() { b.next = 0 }
