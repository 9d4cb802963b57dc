package main

import (
	"crypto/rand"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/kafka"
	servers "github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/resolver"
)

// TestNewerNodeEndsOlderOne: once a node of a newer build has had a partition, this
// build ends, and ends again when it is started, with what is to be done.
func TestNewerNodeEndsOlderOne(t *testing.T) {
	t.Parallel()
	args := append(kafkaArgs(t), "--kafka-session-timeout", "6s")
	dir := t.TempDir()
	s := serve(t, dir, args...)
	s.event(`{"event_type":"seen","user":{"external_id":"a"}}`)
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: servers.Kafka(t), TopicOptions: kafka.TopicOptions{Topic: args[3]}})
	ok(t, err)
	defer log.Close()
	env := eventlog.Envelope{Kind: eventlog.KindCommand, StampMs: time.Now().UnixMilli()}
	_, err = rand.Read(env.ID[:])
	ok(t, err)
	begin, err := json.Marshal(resolver.EpochBegin{Node: "newer", Address: "newer:1", ApplyVersion: resolver.ApplyVersion + 1})
	ok(t, err)
	_, err = log.Append(t.Context(), 0, eventlog.AppendCommand(env.Append(nil), resolver.CommandPartitionEpoch, begin))
	ok(t, err)
	const remedy = "Install that version on this node"
	if code := s.untilEnded(30 * time.Second); code != exitFailed || !strings.Contains(s.log(), remedy) || !strings.Contains(s.log(), `node "newer" at "newer:1"`) {
		t.Errorf("it ended with %d:\n%s", code, s.log())
	}
	code, _, errs := muster(t, "", append([]string{"serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"}, args...)...)
	if code != exitFailed || !strings.Contains(errs, remedy) {
		t.Errorf("started again it ends with %d:\n%s", code, errs)
	}
}
