package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// A checkpoint's manifest lists every file beside it with size and checksum.
// Nothing of a checkpoint is relied upon before all of them were compared: a store
// that lost the end of a file may open all the same, as an older state.

// fileSum is one file of a checkpoint.
type fileSum struct {
	// Path is relative to the checkpoint's directory, with slashes.
	Path string `json:"path"`
	Size int64  `json:"size"`
	// CRC32 is the checksum of the content with the IEEE polynomial. Not with
	// Castagnoli's: some files end with that checksum of themselves, and over a message
	// with its checksum any two files of one length have the same.
	CRC32 uint32 `json:"crc32"`
}

// WrittenOnce reports whether the content of a file of a checkpoint never changes
// under its name for as long as the files of the present state go back to it. Its
// checksum is computed once then.
func WrittenOnce(path string) bool {
	return strings.HasSuffix(path, ".sst") || strings.HasSuffix(path, ".blob") ||
		strings.HasPrefix(path, DirKeys+"/") || strings.HasPrefix(path, DirSegments+"/")
}

// sum computes size and checksum of the files of a checkpoint, in order of their
// paths. known has those of files that have not changed since. With pauses it takes one
// processor, and not all of it.
func (c *Dir) sum(checkpoint string, known map[string]fileSum, pauses *Pauses) ([]fileSum, error) {
	paths, err := c.FilesOf(checkpoint)
	if err != nil {
		return nil, err
	}
	sums := make([]fileSum, len(paths))
	workers := runtime.GOMAXPROCS(0)
	if pauses != nil {
		workers = 1
	}
	err = inParallel(workers, len(paths), func(i int) error {
		if s, ok := known[paths[i]]; ok && WrittenOnce(paths[i]) {
			sums[i] = s
			return nil
		}
		s, err := sumFile(c.FS, c.Path(DirCheckpoints, checkpoint, paths[i]), pauses)
		s.Path = paths[i]
		sums[i] = s
		return err
	})
	return sums, err
}

// Verify compares the files of a checkpoint with what its manifest lists. The
// error wraps statefiles.ErrDamaged unless reading itself failed.
func (c *Dir) Verify(f Manifest) error {
	name := Name(f.Next)
	have, err := c.FilesOf(name)
	if err != nil {
		return err
	}
	for _, path := range have {
		if _, listed := slices.BinarySearchFunc(f.Files, path, func(s fileSum, p string) int { return cmp.Compare(s.Path, p) }); !listed {
			return statefiles.Damaged(c.Path(DirCheckpoints, name, path), "the file does not belong to the checkpoint")
		}
	}
	return inParallel(runtime.GOMAXPROCS(0), len(f.Files), func(i int) error {
		want := f.Files[i]
		path := c.Path(DirCheckpoints, name, want.Path)
		if !slices.Contains(have, want.Path) {
			return statefiles.Damaged(path, "the file is missing")
		}
		got, err := sumFile(c.FS, path, nil)
		switch {
		case statefiles.IsEnvironment(err):
			return err
		case err != nil:
			return fmt.Errorf("%w: %w", statefiles.ErrDamaged, err)
		case got.Size != want.Size:
			return statefiles.Damaged(path, "it has %d bytes instead of %d", got.Size, want.Size)
		case got.CRC32 != want.CRC32:
			return statefiles.Damaged(path, "its checksum is %08x instead of %08x", got.CRC32, want.CRC32)
		}
		return nil
	})
}

// ReadFiles are the files of the checkpoint in the directory dir by its manifest, whatever
// log it is of, and whichever build wrote it.
func ReadFiles(fs vfs.FS, dir string) ([]fileSum, error) {
	path := fs.PathJoin(dir, FileManifest)
	b, err := statefiles.ReadChecked(fs, path)
	if err != nil {
		return nil, err
	}
	var f struct {
		Files []fileSum `json:"files"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, statefiles.Damaged(path, "%v", err)
	}
	return f.Files, nil
}

// FilesOf lists the files of a checkpoint but its manifest, in order of their
// paths. Its directories hold no others.
func (c *Dir) FilesOf(checkpoint string) ([]string, error) {
	var out []string
	for _, dir := range []string{"", DirPebble, DirKeys, DirSegments, DirSpool} {
		names, err := c.FS.List(c.Path(DirCheckpoints, checkpoint, dir))
		if statefiles.IsMisplaced(err) {
			return nil, statefiles.Damaged(c.Path(DirCheckpoints, checkpoint, dir), "it is not a directory")
		}
		if err != nil && !(dir != "" && statefiles.IsNotExist(err)) {
			return nil, fmt.Errorf("list the checkpoint: %w", err)
		}
		for _, n := range names {
			switch path := strings.TrimPrefix(dir+"/"+n, "/"); {
			case dir == "" && (n == FileManifest || n == DirPebble || n == DirKeys || n == DirSegments || n == DirSpool):
			default:
				out = append(out, path)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// keepSums makes these the files whose checksums are known.
func (c *Dir) keepSums(sums []fileSum) {
	c.sums = make(map[string]fileSum, len(sums))
	for _, s := range sums {
		c.sums[s.Path] = s
	}
}

// settingAside is held by [Dir.SetMisplacedAside]: partitions that are loaded at once have
// the directory above theirs in common, and what one found there another may have mended.
var settingAside sync.Mutex

// SetMisplacedAside gives what is not a directory another name where there must be one:
// everything below the state's directory is rebuilt from the log. One that has the name
// already is replaced. It returns the old names.
func (c *Dir) SetMisplacedAside() (aside []string, err error) {
	settingAside.Lock()
	defer settingAside.Unlock()
	above := c.FS.PathDir(c.Root)
	for _, dir := range []string{above, c.Root, c.Path(DirCheckpoints), c.Path(DirKeys), c.Path(DirSegments), c.Path(DirSpool)} {
		misplaced, err := c.Misplaced(dir)
		if err != nil {
			return aside, err
		}
		if !misplaced {
			continue
		}
		if err := c.FS.Rename(dir, dir+MisplacedSuffix); err != nil {
			return aside, err
		}
		aside = append(aside, dir)
		if err := statefiles.SyncDir(c.FS, c.FS.PathDir(dir)); err != nil {
			return aside, err
		}
	}
	return aside, nil
}

// Misplaced reports whether a file is where this directory must be, or a link that leads
// nowhere.
func (c *Dir) Misplaced(dir string) (bool, error) {
	// The list comes first: another partition may make the directory at any time.
	names, err := c.FS.List(c.FS.PathDir(dir))
	if statefiles.IsNotExist(err) || statefiles.IsMisplaced(err) { // or the directory above is
		return false, nil
	}
	if err != nil || !slices.Contains(names, c.FS.PathBase(dir)) {
		return false, err
	}
	info, err := c.FS.Stat(dir)
	if statefiles.IsNotExist(err) {
		return true, nil // a link
	}
	return err == nil && !info.IsDir(), err
}

// MisplacedSuffix ends the name of what was set aside by [Dir.SetMisplacedAside].
const MisplacedSuffix = ".damaged"

// sumFile computes size and checksum of a file.
func sumFile(fsys vfs.FS, path string, pauses *Pauses) (s fileSum, err error) {
	f, err := fsys.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return s, err
	}
	h := crc32.NewIEEE()
	// WriterTo and ReaderFrom would bring their own, smaller buffers.
	count := &countingWriter{w: h, pauses: pauses}
	_, err = io.CopyBuffer(count, struct{ io.Reader }{f}, make([]byte, sumBuffer))
	s.Size = count.n
	s.CRC32 = h.Sum32()
	return s, errors.Join(err, f.Close())
}

const sumBuffer = 256 << 10

// inParallel calls do for 0 to n-1 from so many goroutines, and returns the error of the
// lowest number that failed.
func inParallel(workers, n int, do func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	next := make(chan int)
	for range min(n, workers) {
		wg.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// DamagedPrefix begins the name of a checkpoint that was set aside.
const DamagedPrefix = "damaged-"

// ForeignPrefix begins the name of a checkpoint of another log that was set aside.
const ForeignPrefix = "foreign-"

// RemoveSetAside removes the checkpoints that were set aside.
func (c *Dir) RemoveSetAside() error { return c.removeSetAside("\xff") }

// RemoveSetAsideBelow removes those whose offset is below one.
func (c *Dir) RemoveSetAsideBelow(offset int64) error { return c.removeSetAside(Name(offset)) }

func (c *Dir) removeSetAside(below string) error {
	names, err := c.FS.List(c.Path(DirCheckpoints))
	if err != nil {
		return err
	}
	for _, n := range names {
		if offset, is := strings.CutPrefix(n, DamagedPrefix); is && offset < below {
			if err := c.FS.RemoveAll(c.Path(DirCheckpoints, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// NewestReadable is the offset of the newest checkpoint here whose manifest can
// be read, by this build or by another, -1 for none.
func (c *Dir) NewestReadable() (int64, error) {
	offsets, err := c.List()
	if err != nil {
		return 0, err
	}
	for i := len(offsets) - 1; i >= 0; i-- {
		if _, _, err := c.ReadManifest(offsets[i]); err == nil || errors.Is(err, statefiles.ErrNewer) || errors.Is(err, statefiles.ErrOlder) {
			return offsets[i], nil
		}
	}
	return -1, nil
}
