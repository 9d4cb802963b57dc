package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// movedFile reports that what is in a directory continues elsewhere.
const movedFile = "moved.json"

// moved is the content of movedFile.
type moved struct {
	plan
	// Done is false while muster migrate is not at its end.
	Done bool `json:"done"`
}

// ErrMoved means that a data directory was moved to Kafka and ClickHouse.
var ErrMoved = errors.New("the data directory was moved")

// checkMoved refuses a directory that was moved.
func checkMoved(dir string) error {
	m, found, err := readMoved(dir)
	switch {
	case err != nil || !found:
		return err
	case !m.Done:
		return fmt.Errorf("%w: muster migrate was cut off at its end, %s continues as %s. Run muster migrate again with the same flags. To go back instead, remove %s",
			ErrMoved, dir, m.log(), filepath.Join(dir, movedFile))
	}
	return fmt.Errorf("%w: %s continues as %s. Start with %s. To go back instead, which loses what was stored there since, remove %s",
		ErrMoved, dir, m.log(), m.flags(), filepath.Join(dir, movedFile))
}

// CheckMovedFile returns why the file that says where a directory was moved cannot be read.
func CheckMovedFile(dir string) error {
	_, _, err := readMoved(dir)
	return err
}

func readMoved(dir string) (m moved, found bool, err error) {
	found, err = readJSON(dir, movedFile, &m)
	if found && (m.Cluster == "" || m.Topic == "" || m.Partitions < 1) {
		err = fmt.Errorf("%s cannot be read: put it back as it was", filepath.Join(dir, movedFile))
	}
	return m, found, err
}

// planFile is in a directory that is being moved.
const planFile = "migration.json"

// plan says where a directory is moved to. It is fixed before anything is written
// there.
type plan struct {
	// Log is the id of the directory's log, Base its end.
	Log  string `json:"log"`
	Base int64  `json:"base"`
	// Cluster and Topic name the log in Kafka.
	Cluster    string `json:"cluster"`
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"`
	// To is the data directory that is made, empty for none; Checkpoints the URL of
	// shared ones.
	To          string `json:"to,omitempty"`
	Checkpoints string `json:"checkpoints,omitempty"`
}

func (p plan) log() logName { return logName{Kind: kindKafka, Cluster: p.Cluster, Topic: p.Topic} }

// flags are those that what was moved is started with.
func (p plan) flags() string {
	flags := []string{"--kafka", "--kafka-topic " + p.Topic, "--clickhouse"}
	if p.To != "" {
		flags = append([]string{"--data " + p.To}, flags...)
	}
	if p.Checkpoints != "" {
		flags = append(flags, "--checkpoints")
	}
	return strings.Join(flags[:len(flags)-1], ", ") + " and " + flags[len(flags)-1]
}

func readPlan(dir string) (p plan, found bool, err error) {
	found, err = readJSON(dir, planFile, &p)
	return p, found, err
}

// readJSON reads a file of ours in a data directory.
func readJSON(dir, name string, to any) (found bool, err error) {
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("data directory: %w", err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		return true, fmt.Errorf("%s cannot be read: put it back as it was", path)
	}
	return true, nil
}

// writeJSON writes a file of ours whole or not at all, and returns once it is
// durable.
func writeJSON(dir, name string, from any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", filepath.Join(dir, name), err)
		}
	}()
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, name+".tmp")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

// removeJSON removes such a file, if it is there.
func removeJSON(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := vfs.Default.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
