package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// fetchWait is how long a broker may hold a request at the end of the
// partition before it answers with nothing. A record that is appended
// meanwhile is answered at once.
const fetchWait = 500 // milliseconds

// askFetch sends a request for the records from offset on.
func (c *brokerConn) askFetch(topic string, partition int, offset int64, maxBytes int, clientID string) error {
	c.id++
	return protocol.WriteRequest(c.Conn, c.fetch, c.id, clientID, &fetch.Request{
		ReplicaID: -1, MaxWaitTime: fetchWait, MinBytes: 1, MaxBytes: int32(maxBytes), SessionEpoch: -1,
		Topics: []fetch.RequestTopic{{
			Topic: topic,
			Partitions: []fetch.RequestPartition{{
				Partition: int32(partition), CurrentLeaderEpoch: -1, FetchOffset: offset, LogStartOffset: -1,
				PartitionMaxBytes: int32(maxBytes),
			}},
		}},
	})
}

// fetched is a broker's answer.
type fetched struct {
	code    int16
	records []byte
}

// errMalformed: an answer is not what was asked for.
var errMalformed = errors.New("malformed answer")

// parseFetch reads an answer without its size. Its bytes are kept in records.
// It never panics, whatever the bytes.
func parseFetch(b []byte, version int16, id int32, topic string, partition int) (fetched, error) {
	d := decoder{b: b}
	if got := d.int32(); got != id {
		return fetched{}, fmt.Errorf("%w: it answers request %d, not %d", errMalformed, got, id)
	}
	d.int32() // throttle time: the broker delays by itself
	var code int16
	if version >= 7 {
		code = d.int16()
		d.int32() // session
	}
	topics := d.int32()
	if code != 0 {
		return fetched{code: code}, d.err()
	}
	name := d.string()
	partitions, index := d.int32(), d.int32()
	if d.failed || topics != 1 || name != topic || partitions != 1 || index != int32(partition) {
		return fetched{}, fmt.Errorf("%w: it has %d topics, the first %q with %d partitions from %d on; one, %q with partition %d, was asked for",
			errMalformed, topics, name, partitions, index, topic, partition)
	}
	code = d.int16()
	d.int64() // high watermark
	d.int64() // last stable offset
	if version >= 5 {
		d.int64() // log start
	}
	for n := d.int32(); n > 0 && !d.failed; n-- { // aborted transactions
		d.int64()
		d.int64()
	}
	if version >= 11 {
		d.int32() // preferred read replica
	}
	records := d.bytes()
	return fetched{code: code, records: records}, d.err()
}

// decoder takes Kafka's types off a slice. Beyond its end all are zero.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) err() error {
	if d.failed {
		return fmt.Errorf("%w: it ends early", errMalformed)
	}
	return nil
}

func (d *decoder) take(n int) []byte {
	if d.failed || n < 0 || n > len(d.b) {
		d.failed = true
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) int16() int16 {
	if b := d.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) string() string { return string(d.take(int(d.int16()))) }

// bytes takes a length and as many bytes; -1 stands for none.
func (d *decoder) bytes() []byte {
	n := d.int32()
	if n == -1 {
		return nil
	}
	return d.take(int(n))
}

// largestAnswer bounds what a reader takes from a broker: a whole fetch or one
// batch of the topic's largest, whichever is larger, and some.
func largestAnswer(fetchBytes, batchBytes int) int {
	return min(max(fetchBytes, batchBytes)+64<<10, math.MaxInt32)
}
