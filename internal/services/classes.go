package services

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// classesFile holds Kafka's classes as Java loaded them once, which saves two
// fifths of the processor time that a broker takes to start. A Java that it does
// not suit does without it.
const classesFile = "kafka.jsa"

// classesDir is the name below the cache for the classes as that Java loads them.
func classesDir(java string) string {
	if path, err := filepath.EvalSymlinks(java); err == nil {
		java = path
	}
	id := sha256.Sum256([]byte(kafkaDir() + "\x00" + java))
	return "kafka-classes-" + hex.EncodeToString(id[:6])
}

// classesFlag has Java use the file, if it is there.
func (in *installer) classesFlag(java string) []string {
	path := filepath.Join(in.cache, classesDir(java), classesFile)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{"-XX:SharedArchiveFile=" + path, "-Xlog:cds=off", "-Xlog:cds+dynamic=off"}
}

// saveClasses writes the file, by running a broker, unless it is there.
func (in *installer) saveClasses(ctx context.Context) error {
	java, err := look("java")
	if err != nil {
		return err
	}
	// Before the lock is taken, which this takes, too.
	if _, err := in.kafkaStorage(ctx); err != nil {
		return err
	}
	_, err = in.ensure(ctx, classesDir(java), func(ctx context.Context, dir string) error {
		fmt.Fprintln(in.out, "preparing Kafka for quicker starts")
		work, err := os.MkdirTemp("", "muster-kafka-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(work)
		lim := ownLimits
		lim.saveClasses = filepath.Join(dir, classesFile)
		c, err := newKafka(ctx, in, work, 1, Doors{}, lim, false)
		if err != nil {
			return err
		}
		b := c.brokers[0]
		if err := b.start(); err != nil {
			return err
		}
		err = c.waitServing(ctx, 0, 1)
		// It writes the file when it ends, which takes it a while.
		if err := errors.Join(err, b.stop(2*time.Minute)); err != nil {
			return err
		}
		if _, err := os.Stat(lim.saveClasses); err != nil {
			return b.failure(err)
		}
		return nil
	})
	return err
}
