package services

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	bootFile = "bootstrap.checkpoint"
	metaFile = "meta.properties"
)

// kafkaStorage returns a directory that Kafka's own tool formatted, which takes
// it two seconds. Brokers get copies.
func (in *installer) kafkaStorage(ctx context.Context) (string, error) {
	// Before the lock is taken, which this takes, too.
	jars, err := in.kafkaJars(ctx)
	if err != nil {
		return "", err
	}
	dir, err := in.ensure(ctx, "storage-of-"+kafkaDir(), func(ctx context.Context, dir string) error {
		conf, err := writeIn(dir, "server.properties", brokerProperties(dir, 0, []int{firstPort}, []int{firstPort + 1}, nil))
		if err != nil {
			return err
		}
		return run(ctx, dir, "java", "-Xmx128m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
			"-cp", filepath.Join(jars, "*"), "kafka.tools.StorageTool", "format", "--cluster-id", kafkaID(), "--config", conf)
	})
	return filepath.Join(dir, "data"), err
}

// formatLike copies formatted storage to data, with ids of its own.
func formatLike(formatted, data, cluster string, id int) error {
	boot, err := os.ReadFile(filepath.Join(formatted, bootFile))
	if err != nil {
		return err
	}
	if _, err := writeIn(data, bootFile, string(boot)); err != nil {
		return err
	}
	meta, err := os.ReadFile(filepath.Join(formatted, metaFile))
	if err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(string(meta)) {
		switch key, _, _ := strings.Cut(line, "="); key {
		case "node.id":
			line = fmt.Sprintf("node.id=%d\n", id)
		case "directory.id":
			line = "directory.id=" + kafkaID() + "\n"
		case "cluster.id":
			line = "cluster.id=" + cluster + "\n"
		}
		out.WriteString(line)
	}
	_, err = writeIn(data, metaFile, out.String())
	return err
}

// kafkaID is a random UUID in Kafka's notation.
func kafkaID() string {
	var id [16]byte
	rand.Read(id[:])
	// The first bits of a Kafka id may not spell a dash, which tools take for a flag.
	id[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(id[:])
}
