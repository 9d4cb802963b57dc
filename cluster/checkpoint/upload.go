package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/blobtree"
)

// Upload stores the checkpoint in dir. It sends what no other has, and nothing
// when it is there or of no use: two newer ones are.
func (s *Store) Upload(ctx context.Context, partition int, dir string, offset int64, epoch uint64) error {
	set, err := s.set(partition)
	if err != nil {
		return err
	}
	have, err := versions(ctx, set)
	if err != nil {
		return err
	}
	v := version{offset, epoch}
	if slices.Contains(have, v) || len(have) >= keptVersions && have[len(have)-keptVersions].offset > offset {
		return nil
	}
	if len(have) > 0 {
		// Damage is no reason: what comes next is whole.
		if _, err := s.manifest(ctx, set, partition, have[len(have)-1]); err != nil && !errors.Is(err, blobtree.ErrMissing) && !errors.Is(err, blobtree.ErrDamaged) {
			return err
		}
	}
	sent, err := set.Put(ctx, v.String(), about{s.opts.Log, partition, offset, epoch}, dir, nil)
	if err != nil {
		return fmt.Errorf("upload checkpoint %v of partition %d: %w", v, partition, err)
	}
	s.opts.Logger.Debug("uploaded a checkpoint", "partition", partition, "offset", offset, "bytes", sent.Bytes, "sent", sent.SentBytes, "objects", sent.Objects)
	s.thin(ctx, set, partition, append(have, v))
	return nil
}

// thin removes what is superseded, and now and then its files. A failure
// leaves it to the next time.
func (s *Store) thin(ctx context.Context, set *blobtree.Set, partition int, all []version) {
	log := s.opts.Logger.With("partition", partition)
	slices.SortFunc(all, compareVersions)
	for _, v := range all[:max(0, len(all)-keptVersions)] {
		if err := set.Remove(ctx, v.String()); err != nil {
			log.Warn("an old shared checkpoint could not be removed", "checkpoint", v, "error", err)
			return
		}
	}
	now := s.opts.Now()
	s.mu.Lock()
	due := now.Sub(s.mu.collected[partition]) >= collectEvery
	if due {
		s.mu.collected[partition] = now
	}
	s.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	begun := time.Now() // for the log line only
	n, err := set.Collect(ctx, all[len(all)-1].String())
	if err != nil && ctx.Err() == nil {
		log.Warn("files of old shared checkpoints could not be removed", "error", err)
	} else if n > 0 {
		log.Info("removed files of old shared checkpoints", "files", n, "took", time.Since(begun))
	}
}
