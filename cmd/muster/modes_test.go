package main

import (
	"net/url"
	"strings"
	"testing"

	servers "github.com/musterhq/muster/internal/services"
)

// inModes runs a test with the log and history in files, and with both in
// Kafka and ClickHouse; args are what serve needs for that.
func inModes(t *testing.T, test func(t *testing.T, args []string)) {
	t.Run("files", func(t *testing.T) { test(t, nil) })
	t.Run("kafka", func(t *testing.T) { test(t, kafkaArgs(t)) })
}

// kafkaArgs names a topic and a database that no other test has.
func kafkaArgs(t *testing.T) []string {
	t.Helper()
	return append([]string{"--kafka", strings.Join(servers.Kafka(t), ","), "--kafka-topic", servers.TopicName(t)}, clickHouseArgs(t)...)
}

func clickHouseArgs(t *testing.T) []string {
	t.Helper()
	return []string{"--clickhouse", database(t, servers.ClickHouse(t), servers.DatabaseName(t))}
}

// database is the DSN with another database.
func database(t *testing.T, dsn, name string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	ok(t, err)
	u.Path = "/" + name
	return u.String()
}
