package sharing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
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
	return s.remove()
}

// Log is the log of a partition, as far as removing its files needs it.
type Log struct {
	// Bounds are its start and its end.
	Bounds func(ctx context.Context) (start, end int64, err error)
	// Check compares a checkpoint with the log, which begins at start.
	Check func(ctx context.Context, x checkpoint.Candidate, start int64) error
}

// ForgetOlder removes the files of a partition that is not here, such as one that this
// node had when it was killed, if shared storage has a newer checkpoint that the log
// goes on from. Should what is shared turn out to be damaged, the log can be replayed; where
// it lacks its beginning, a checkpoint that it goes on from stays.
func (s *Sharing) ForgetOlder(ctx context.Context, log Log) error {
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
	part := s.dir.Path(checkpoint.DirCheckpoints, tmp)
	shared, err := s.store.NewestPart(ctx, s.partition, part, newest, []string{checkpoint.FileManifest, checkpoint.FileRecords})
	if err != nil {
		return errors.Join(fmt.Errorf("the shared checkpoints cannot be read: %w", err), s.dir.FS.RemoveAll(part))
	}
	if shared < 0 {
		return nil
	}
	useful, err := s.useful(ctx, log, shared, newest)
	if err = errors.Join(err, s.dir.FS.RemoveAll(part)); err != nil || useful {
		return err
	}
	if err := s.remove(); err != nil {
		return err
	}
	s.log.Info("removed what this node had of a partition that other nodes own: a newer checkpoint is shared", "own", newest, "shared", shared)
	return nil
}

// useful reports whether the checkpoint at newest may be needed though one is shared, of which
// the manifest was fetched: the log does not go on from that, has other records than it, or
// lacks its beginning.
func (s *Sharing) useful(ctx context.Context, log Log, shared, newest int64) (bool, error) {
	start, end, err := log.Bounds(ctx)
	if err != nil || shared < start || shared > end || start > 0 && newest >= start {
		return true, err
	}
	var x checkpoint.Candidate
	if x.Manifest, x.IDs, err = s.dir.ReadManifestIn(tmp, shared); err == nil {
		err = log.Check(ctx, x, start)
	}
	if err != nil {
		err = fmt.Errorf("the shared checkpoints in %s: %w", s.store.Place(), err)
	}
	return err != nil, err
}

// remove removes the partition's files, but what was set aside as another log's.
func (s *Sharing) remove() error {
	dir := s.dir.Path(checkpoint.DirCheckpoints)
	names, err := s.dir.FS.List(dir)
	if err != nil && !statefiles.IsNotExist(err) {
		return err
	}
	foreign := func(name string) bool { return strings.HasPrefix(name, checkpoint.ForeignPrefix) }
	if !slices.ContainsFunc(names, foreign) {
		return s.dir.FS.RemoveAll(s.dir.Root)
	}
	all, err := s.dir.FS.List(s.dir.Root)
	if err != nil {
		return err
	}
	for _, name := range slices.DeleteFunc(names, foreign) {
		err = errors.Join(err, s.dir.FS.RemoveAll(s.dir.FS.PathJoin(dir, name)))
	}
	for _, name := range all {
		if name != checkpoint.DirCheckpoints {
			err = errors.Join(err, s.dir.FS.RemoveAll(s.dir.Path(name)))
		}
	}
	return err
}
