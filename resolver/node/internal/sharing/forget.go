package sharing

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// What a node has of a partition that others own learns of no erasure. It is needed only
// until shared storage has something newer: from then on a start would fetch that.

// Forget removes a released partition's files from this node once shared storage
// has its last checkpoint, which is at the offset last: what is erased under another
// owner must not live on here until the partition comes back.
func (s *Sharing) Forget(last int64) error {
	if s.store == nil || s.offset.Load() < last {
		return nil
	}
	return s.dir.FS.RemoveAll(s.dir.Root)
}

// ForgetOlder removes the files of a partition that is not here, such as one that this
// node had when it was killed, if shared storage has a newer checkpoint that the log
// goes on from, of which bounds are its start and end. Should what is shared turn out
// to be damaged, the log can be replayed; where it lacks its beginning, a checkpoint that
// it goes on from stays.
func (s *Sharing) ForgetOlder(ctx context.Context, bounds func(ctx context.Context, partition int) (start, end int64, err error)) error {
	if s.store == nil {
		return nil // a replay from the beginning may be impossible, or long
	}
	if _, err := s.dir.FS.Stat(s.dir.Root); statefiles.IsNotExist(err) {
		return nil
	}
	own, err := s.dir.List()
	if err != nil {
		return err
	}
	newest := int64(-1)
	for _, offset := range own {
		newest = offset
		// What another log or another version has left is for people to look at.
		if _, _, err := s.dir.ReadManifest(offset); err != nil && !errors.Is(err, statefiles.ErrDamaged) {
			return err
		}
	}
	shared, err := s.store.NewestOffset(ctx, s.partition)
	if err != nil {
		return fmt.Errorf("the shared checkpoints cannot be read: %w", err)
	}
	if shared <= newest {
		return nil
	}
	start, end, err := bounds(ctx, s.partition)
	if err != nil || shared < start || shared > end || start > 0 && newest >= start {
		return err
	}
	if err := s.dir.FS.RemoveAll(s.dir.Root); err != nil {
		return err
	}
	s.log.Info("removed what this node had of a partition that other nodes own: a newer checkpoint is shared", "own", newest, "shared", shared)
	return nil
}
