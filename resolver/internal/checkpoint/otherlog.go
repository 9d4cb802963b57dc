package checkpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/musterhq/muster/eventlog"
)

// CheckLog compares the record before the checkpoint, as the log has it, with those that the
// state has applied. It finds the state of another partition, of a topic that was made anew
// under its name, or of a log that went on in another way since. Its error wraps ErrOtherLog.
func (x Candidate) CheckLog(record []byte) error {
	env, _, err := eventlog.DecodeEnvelope(record)
	if err != nil {
		return nil // it was skipped
	}
	for _, id := range slices.Backward(x.IDs) {
		if id == env.ID {
			return nil
		}
	}
	return fmt.Errorf("%w: the state of checkpoint %d has not applied the log's record %d: they are of different partitions or topics, or the log lost records and has others in their place", ErrOtherLog, x.Next, x.Next-1)
}

// Advise adds to an ErrOtherLog what to do about a state that is here, beside a log that
// starts at start. Only a log that has its beginning can replace the state.
func (c *Dir) Advise(err error, start int64) error {
	dir := c.FS.PathDir(c.Root)
	switch {
	case !errors.Is(err, ErrOtherLog):
		return err
	case start > 0:
		return fmt.Errorf("%w. Put the log back that belongs to the state (its files, or its topic in Kafka), or restore a backup. Keep %s: it cannot be rebuilt from the log, which starts at %d", err, dir, start)
	}
	return fmt.Errorf("%w. Put the log back that belongs to the state, or move %s away: the state is then rebuilt from the log", err, dir)
}

// Apart reports whether what a state has applied has nothing to do with the state of the
// checkpoint at offset here, which is older. A state that went on from it has applied its
// newest record. False also says that this cannot be told.
func (c *Dir) Apart(x Candidate, offset int64) bool {
	own, ids, err := c.ReadManifest(offset)
	if err != nil || len(ids) == 0 || x.Next-int64(len(x.IDs)) >= own.Next {
		return false // its newest records may have been forgotten
	}
	return !slices.Contains(x.IDs, ids[len(ids)-1])
}
