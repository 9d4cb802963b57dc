package engine

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// logFile says which log a directory belongs to that has none of its own.
const logFile = "log.json"

// kindKafka is the only kind of log that logFile names.
const kindKafka = "kafka"

// logName is the content of logFile.
type logName struct {
	Kind string `json:"kind"`
	// Cluster is Kafka's id of itself, Topic the log's.
	Cluster string `json:"cluster"`
	Topic   string `json:"topic"`
	// Node is this node's id: random, and as old as the directory.
	Node string `json:"node"`
	// Base is the offset that the topic's records count from.
	Base int64 `json:"base,omitempty"`
}

func (l logName) String() string {
	return fmt.Sprintf("topic %s of the Kafka cluster %s", l.Topic, l.Cluster)
}

// ErrOtherLog means that a data directory belongs to another log.
var ErrOtherLog = errors.New("the data directory belongs to another log")

// checkKind refuses a directory whose log is of the other kind, before anything
// in it is opened.
func checkKind(dir string, kafka bool) error {
	if err := checkMoved(dir); err != nil {
		return err
	}
	name, found, err := readLogName(dir)
	if err != nil {
		return err
	}
	if !kafka && found {
		return fmt.Errorf("%w: %s has the state of %s. Start with --kafka and --kafka-topic %s, or name another directory with --data", ErrOtherLog, dir, name, name.Topic)
	}
	if !kafka || found {
		return nil
	}
	for _, has := range []struct{ name, what string }{
		{"log", "events of its own, which are not in Kafka. Start without --kafka to continue with them, or name another directory with --data"},
		{"state", "a state, and no " + logFile + ", which names its topic. Put that file back, or move the directory away: it is then rebuilt from the topic"},
	} {
		if _, err := os.Stat(filepath.Join(dir, has.name)); err == nil {
			return fmt.Errorf("%w: %s has %s", ErrOtherLog, dir, has.what)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	return nil
}

// claimDir makes a new directory that of the topic, or checks that it is.
func claimDir(dir string, log logName, random io.Reader) (logName, error) {
	have, found, err := readLogName(dir)
	switch {
	case err != nil:
		return have, err
	case found && (have.Cluster != log.Cluster || have.Topic != log.Topic):
		return have, fmt.Errorf("%w: %s has the state of %s, the flags name %s. Name that one with --kafka and --kafka-topic, or another directory with --data", ErrOtherLog, dir, have, log)
	case found:
		return have, nil
	}
	var id [8]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return log, fmt.Errorf("source of randomness: %w", err)
	}
	log.Kind, log.Node = kindKafka, hex.EncodeToString(id[:])
	return log, writeLogName(dir, log)
}

func readLogName(dir string) (l logName, found bool, err error) {
	path := filepath.Join(dir, logFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, false, nil
	}
	if err != nil {
		return l, false, fmt.Errorf("data directory: %w", err)
	}
	if err := json.Unmarshal(b, &l); err != nil || l.Kind != kindKafka || l.Cluster == "" || l.Topic == "" || l.Node == "" {
		return l, false, fmt.Errorf("%s cannot be read: put it back as it was, or name another directory with --data", path)
	}
	return l, true, nil
}

// writeLogName returns once the file is durable.
func writeLogName(dir string, l logName) error { return writeJSON(dir, logFile, l) }
