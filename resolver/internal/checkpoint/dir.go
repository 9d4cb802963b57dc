package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// The names of files and directories. A checkpoint has
//
//	checkpoints/<offset>/pebble/    documents, headers, identities, entities
//	checkpoints/<offset>/keys/      idempotency runs
//	checkpoints/<offset>/segments/  state of the segment engines
//	checkpoints/<offset>/spool/     rows history had not stored
//	checkpoints/<offset>/records    recent record ids
//	checkpoints/<offset>/MANIFEST   what belongs to it, with a checksum
//
// Large files are hard links to the live ones, so writing a checkpoint costs
// what changed. It is committed by renaming the finished directory.
const (
	DirCheckpoints = "checkpoints"
	DirLive        = "live" // the store in use, beside the checkpoints
	DirPebble      = "pebble"
	DirKeys        = "keys"
	DirSegments    = "segments"
	DirSpool       = "spool"
	FileManifest   = "MANIFEST"
	FileRecords    = "records"
	// TmpPrefix begins the name of a checkpoint that is not finished.
	TmpPrefix = "tmp-"

	// Kept is how many checkpoints are kept: the newest, and one to fall back to.
	Kept = 2
)

// Dir writes and opens the checkpoints of one partition.
type Dir struct {
	FS   vfs.FS
	Root string // of the partition
	// Source is the partition's directory that checkpoints are loaded from; empty is dir.
	Source string
	Log    string // names the log that the state follows from
	// Took times the opening that is under way, nil when none is.
	Took *Phases
	// Damaged is called with damage to the store's files that is found while it is open.
	Damaged func(error)
	// sums are the files of the checkpoint loaded or written last, by path. Used by
	// one goroutine: the one that loads, then the one that writes.
	sums map[string]fileSum
	// Disk is the space for the files; nil where there always is enough.
	Disk *state.Disk
	// Fatal ends the process; nil for a panic.
	Fatal func(why string)
}

// Partition is the directory of a partition in the state's directory.
func Partition(fs vfs.FS, dir string, partition int) string {
	return fs.PathJoin(dir, fmt.Sprintf("p%d", partition))
}

// Path joins names to the directory.
func (c *Dir) Path(parts ...string) string {
	return c.FS.PathJoin(append([]string{c.Root}, parts...)...)
}

// Name is the directory of the checkpoint that has the state before the record at offset.
func Name(offset int64) string { return fmt.Sprintf("%020d", offset) }

// List returns the offsets of the checkpoints, oldest first.
func (c *Dir) List() ([]int64, error) {
	names, err := c.FS.List(c.Path(DirCheckpoints))
	if err != nil && !statefiles.IsNotExist(err) && !statefiles.IsMisplaced(err) {
		return nil, err
	}
	var out []int64
	for _, n := range names {
		if o, err := strconv.ParseInt(n, 10, 64); err == nil && n == Name(o) {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Prepare makes the partition's directories and clears what a crash left.
func (c *Dir) Prepare() error {
	if err := c.FS.MkdirAll(c.Root, 0o700); err != nil {
		return err
	}
	// The names of the directories above must last, too: what is synced in a directory
	// goes with it when a machine fails before its name was.
	above := c.FS.PathDir(c.Root)
	if err := errors.Join(statefiles.SyncDir(c.FS, above), statefiles.SyncDir(c.FS, c.FS.PathDir(above))); err != nil {
		return err
	}
	for _, d := range []string{DirCheckpoints, DirKeys, DirSegments, DirSpool} {
		if err := c.FS.MkdirAll(c.Path(d), 0o700); err != nil {
			return err
		}
	}
	names, err := c.FS.List(c.Path(DirCheckpoints))
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(n, TmpPrefix) {
			if err := c.FS.RemoveAll(c.Path(DirCheckpoints, n)); err != nil {
				return err
			}
		}
	}
	return errors.Join(statefiles.SyncDir(c.FS, c.Root), c.FS.RemoveAll(c.Path(DirLive)))
}

// Prune removes all but the newest checkpoints and the one at the offset pinned,
// which is being read. It returns the offset of the oldest of the newest: the log
// may be trimmed below it.
func (c *Dir) Prune(pinned int64) (int64, error) {
	list, err := c.List()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	for ; len(list) > Kept; list = list[1:] {
		if list[0] == pinned {
			continue
		}
		if err := c.FS.RemoveAll(c.Path(DirCheckpoints, Name(list[0]))); err != nil {
			return 0, err
		}
	}
	return list[0], statefiles.SyncDir(c.FS, c.Path(DirCheckpoints))
}

// Restore makes the live directories those of the checkpoint: immutable files
// are linked, others copied. The zero manifest is the empty state.
func (c *Dir) Restore(f Manifest) error {
	c.keepSums(f.Files)
	from := c.FS.PathJoin(cmp.Or(c.Source, c.Root), DirCheckpoints, Name(f.Next))
	if err := c.FS.MkdirAll(c.Path(DirLive), 0o700); err != nil {
		return err
	}
	var names []string
	var err error
	if f.Version != 0 {
		if names, err = c.FS.List(c.FS.PathJoin(from, DirPebble)); err != nil {
			return err
		}
	}
	for _, n := range names {
		src, dst := c.FS.PathJoin(from, DirPebble, n), c.Path(DirLive, n)
		if strings.HasSuffix(n, ".sst") || strings.HasSuffix(n, ".blob") {
			err = c.FS.Link(src, dst)
		} else {
			err = vfs.Copy(c.FS, src, dst)
		}
		if err != nil {
			return err
		}
	}
	want := map[string][]string{DirKeys: f.Runs, DirSegments: f.Segments}
	for _, s := range f.Spool {
		want[DirSpool] = append(want[DirSpool], s.File)
	}
	for _, d := range []string{DirKeys, DirSegments, DirSpool} {
		have, err := c.FS.List(c.Path(d))
		if err != nil {
			return err
		}
		// All of them: another node's checkpoint has files of the same names with
		// other content.
		for _, n := range have {
			if err := c.FS.RemoveAll(c.Path(d, n)); err != nil {
				return err
			}
		}
		for _, n := range want[d] {
			if err := c.FS.Link(c.FS.PathJoin(from, d, n), c.Path(d, n)); err != nil {
				return err
			}
		}
		if err := statefiles.SyncDir(c.FS, c.Path(d)); err != nil {
			return err
		}
	}
	return statefiles.SyncDir(c.FS, c.Root)
}
