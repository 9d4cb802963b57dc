package checkpoint

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// Written are the files that now hold what was frozen.
type Written struct {
	Runs     []*dedup.Run
	Segments []SegmentFile
}

// Write makes the checkpoint durable. Called by one goroutine.
// Without a throttle it is written as fast as that goes. After an error it has removed
// what it made, and may be called again.
func (c *Dir) Write(f *Frozen, db *pebble.DB, feed *feed.Feed, throttle *Throttle) (w Written, err error) {
	defer func() {
		if err != nil {
			c.discard(f, w)
			w = Written{}
		}
	}()
	pauses := newPauses(throttle, f.size())
	if err := WriteGeneration(db, f, pauses, c.Disk); err != nil {
		return w, fmt.Errorf("write generation: %w", err)
	}
	if w.Runs, err = c.WriteRuns(f, pauses); err != nil {
		return w, fmt.Errorf("write idempotency keys: %w", err)
	}
	if w.Segments, err = c.WriteSegments(f, pauses); err != nil {
		return w, fmt.Errorf("write segment state: %w", err)
	}
	if err := c.Commit(f, db, feed, w, pauses); err != nil {
		return w, fmt.Errorf("commit checkpoint %d: %w", f.Next, err)
	}
	return w, nil
}

// discard removes what an attempt has written, as far as that goes: it needs space.
func (c *Dir) discard(f *Frozen, w Written) {
	_ = c.FS.RemoveAll(c.Path(DirCheckpoints, TmpPrefix+Name(f.Next)))
	if w.Runs != nil {
		_ = c.DiscardRuns(w.Runs, f.KeyRuns)
	}
	if w.Segments != nil {
		_ = c.DiscardSegments(w.Segments, f.Chain)
	}
}

// Commit makes a checkpoint of what is in db and of the files in w, under the name that the
// manifest of f has the offset of. Rows of f that feed has not stored yet go with it.
func (c *Dir) Commit(f *Frozen, db *pebble.DB, feed *feed.Feed, w Written, pauses *Pauses) error {
	f.Segments, f.Runs, f.Spool = nil, nil, nil
	tmp := TmpPrefix + Name(f.Next)
	if err := c.FS.RemoveAll(c.Path(DirCheckpoints, tmp)); err != nil {
		return err
	}
	for _, d := range []string{"", DirKeys, DirSegments, DirSpool} {
		if err := c.FS.MkdirAll(c.Path(DirCheckpoints, tmp, d), 0o700); err != nil {
			return err
		}
	}
	f.Log = c.Log
	if err := writeOrigin(db, f.Manifest); err != nil {
		return err
	}
	// The memtable is not part of a Pebble checkpoint without a WAL.
	if err := c.Disk.Flush(db); err != nil {
		return err
	}
	if err := scrubStore(db, c.Disk, f.Scrub); err != nil {
		return err
	}
	// Keys of the queue of enrolments have no texts of profiles.
	if slices.ContainsFunc(f.Scrub, func(s Scrubbed) bool { return len(s.Ordinals) > 0 }) {
		if err := c.renewManifest(db, f.Manifest); err != nil {
			return err
		}
	}
	if err := db.Checkpoint(c.Path(DirCheckpoints, tmp, DirPebble)); err != nil {
		return err
	}
	if err := c.Disk.StoreErr(); err != nil {
		return err
	}
	for _, s := range w.Segments {
		f.Segments = append(f.Segments, s.name)
		if err := c.FS.Link(c.Path(DirSegments, s.name), c.Path(DirCheckpoints, tmp, DirSegments, s.name)); err != nil {
			return err
		}
	}
	for _, r := range w.Runs {
		f.Runs = append(f.Runs, r.Name)
		if err := c.FS.Link(c.Path(DirKeys, r.Name), c.Path(DirCheckpoints, tmp, DirKeys, r.Name)); err != nil {
			return err
		}
	}
	for _, it := range f.Items {
		if !feed.Pending(it) {
			continue
		}
		if err := feed.ToFile(it, false, pauses.worked); err != nil {
			return err
		}
		if err := c.FS.Link(c.Path(DirSpool, it.File), c.Path(DirCheckpoints, tmp, DirSpool, it.File)); err != nil {
			return err
		}
		f.Spool = append(f.Spool, SpoolFile{it.From, it.To, it.File})
	}
	var ids bytes.Buffer
	for _, id := range f.Records {
		ids.Write(id[:])
	}
	if err := statefiles.Write(c.FS, c.Path(DirCheckpoints, tmp, FileRecords), statefiles.WithChecksum(ids.Bytes())); err != nil {
		return err
	}
	sums, err := c.sum(tmp, c.sums, pauses)
	if err != nil {
		return err
	}
	f.Files = sums
	if err := statefiles.Write(c.FS, c.Path(DirCheckpoints, tmp, FileManifest), statefiles.WithChecksum(must.JSON(f.Manifest))); err != nil {
		return err
	}
	for _, d := range []string{DirKeys, DirSegments, DirSpool, ""} {
		if err := statefiles.SyncDir(c.FS, c.Path(DirCheckpoints, tmp, d)); err != nil {
			return err
		}
	}
	final := c.Path(DirCheckpoints, Name(f.Next))
	if err := c.FS.RemoveAll(final); err != nil {
		return err
	}
	if err := c.FS.Rename(c.Path(DirCheckpoints, tmp), final); err != nil {
		return err
	}
	c.keepSums(sums)
	return statefiles.SyncDir(c.FS, c.Path(DirCheckpoints))
}
