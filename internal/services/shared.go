package services

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// The environment that tests read.
const (
	// EnvKafka holds the addresses of a Kafka that runs elsewhere: HOST:PORT,
	// several with commas.
	EnvKafka = "MUSTER_TEST_KAFKA"
	// EnvClickHouse holds the DSN of a ClickHouse that runs elsewhere.
	EnvClickHouse = "MUSTER_TEST_CLICKHOUSE"
	// EnvRequire set to 1 has tests fail that would be skipped otherwise.
	EnvRequire = "MUSTER_REQUIRE_SERVICES"
)

// addressFile is written by [Up] at the project's root.
const addressFile = ".services.json"

// Addresses are those of the shared servers.
type Addresses struct {
	// Kafka is HOST:PORT, several with commas.
	Kafka string `json:"kafka"`
	// ClickHouse is a DSN.
	ClickHouse string `json:"clickhouse"`
}

// Find returns the addresses of the shared servers, those of the environment
// first, then those in .services.json. One that is unknown is empty.
func Find() (Addresses, error) {
	var a Addresses
	root, err := Root()
	if err == nil {
		a, err = readAddresses(root)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if kafka := os.Getenv(EnvKafka); kafka != "" {
		a.Kafka = kafka
	}
	if dsn := os.Getenv(EnvClickHouse); dsn != "" {
		a.ClickHouse = dsn
	}
	return a, err
}

func readAddresses(root string) (Addresses, error) {
	var a Addresses
	b, err := os.ReadFile(filepath.Join(root, addressFile))
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("%s: %w; run `make services-up` again", addressFile, err)
	}
	return a, nil
}

// Root returns the project's root: the nearest directory from the working
// directory upward that holds Muster's go.mod. The error wraps
// [fs.ErrNotExist] when there is none.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module github.com/musterhq/muster\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod of Muster above the working directory: %w", fs.ErrNotExist)
		}
		dir = up
	}
}

// found is asked once per process: servers that come and go between two tests
// would only hide which of them ran.
var found = struct {
	kafka, clickHouse func() (string, error)
}{
	kafka: sync.OnceValues(func() (string, error) {
		a, err := Find()
		if err != nil {
			return "", err
		}
		if a.Kafka == "" {
			return "", fmt.Errorf("no Kafka: run `make services-up` or set %s", EnvKafka)
		}
		return a.Kafka, probeKafka(a.Kafka)
	}),
	clickHouse: sync.OnceValues(func() (string, error) {
		a, err := Find()
		if err != nil {
			return "", err
		}
		if a.ClickHouse == "" {
			return "", fmt.Errorf("no ClickHouse: run `make services-up` or set %s", EnvClickHouse)
		}
		return a.ClickHouse, probeClickHouse(a.ClickHouse)
	}),
}

func probeKafka(list string) error {
	addrs, err := splitAddrs(list)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, addr := range addrs {
		if _, err := liveBrokers(ctx, addr); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == len(addrs) {
		return fmt.Errorf("Kafka at %s does not answer (run `make services-up`): %w", list, errors.Join(errs...))
	}
	return nil
}

func probeClickHouse(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := withClickHouse(ctx, dsn, func(db *sql.DB) error { return db.PingContext(ctx) })
	if err != nil {
		return fmt.Errorf("ClickHouse at %s does not answer (run `make services-up`): %w", dsn, err)
	}
	return nil
}

// missing skips the test, or fails it where services are required.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv(EnvRequire) == "1" {
		t.Fatalf("%v (%s=1)", err, EnvRequire)
	}
	t.Skip(err)
}

// Kafka returns the addresses of the shared Kafka. Without one the test is
// skipped, or fails where services are required.
func Kafka(t testing.TB) []string {
	t.Helper()
	list, err := found.kafka()
	if err != nil {
		missing(t, err)
	}
	addrs, err := splitAddrs(list)
	if err != nil {
		t.Fatal(err)
	}
	return addrs
}

// ClickHouse returns the DSN of the shared ClickHouse. Without one the test is
// skipped, or fails where services are required.
func ClickHouse(t testing.TB) string {
	t.Helper()
	dsn, err := found.clickHouse()
	if err != nil {
		missing(t, err)
	}
	return dsn
}

// TopicName returns a name that no other test has, for a topic of the shared
// Kafka or as the prefix of several: topics whose names begin with it are
// deleted when the test ends.
func TopicName(t testing.TB) string {
	t.Helper()
	addrs := Kafka(t)
	name := uniqueName(t)
	atEnd(t, "delete topics", func(ctx context.Context) error { return dropTopics(ctx, addrs, name) })
	return name
}

// Topic creates a topic of the shared Kafka, with one replica, and deletes it
// when the test ends.
func Topic(t testing.TB, partitions int, config ...kafka.ConfigEntry) string {
	t.Helper()
	name := TopicName(t)
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if err := createTopic(ctx, Kafka(t), name, partitions, 1, config); err != nil {
		t.Fatal(err)
	}
	return name
}

// DatabaseName returns a name that no other test has, for a database of the
// shared ClickHouse or as the prefix of several: databases whose names begin
// with it are dropped when the test ends.
func DatabaseName(t testing.TB) string {
	t.Helper()
	dsn := ClickHouse(t)
	name := uniqueName(t)
	atEnd(t, "drop databases", func(ctx context.Context) error { return dropDatabases(ctx, dsn, name) })
	return name
}

// Database creates a database in the shared ClickHouse, and drops it when the
// test ends.
func Database(t testing.TB) string {
	t.Helper()
	name := DatabaseName(t)
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	err := withClickHouse(ctx, ClickHouse(t), func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE DATABASE "+quote(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// atEnd runs do when the test ends; the test's own context is over by then.
func atEnd(t testing.TB, what string, do func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
		defer cancel()
		if err := do(ctx); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	})
}

// uniqueName is the test's name in letters, digits and underscores, which both
// servers take, and a random number.
func uniqueName(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, t.Name())
	if len(name) > 60 {
		name = name[:60]
	}
	var id [6]byte
	for i := range id {
		id[i] = byte(rand.Uint32())
	}
	return name + "_" + hex.EncodeToString(id[:])
}
