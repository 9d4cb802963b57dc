package backup

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/resolver/statecheck"
)

// checkState has the files of checkpoints among sources compared with what the manifests
// beside them say, when they are read. dir is the data directory, for the errors. It is for
// a log that lacks its beginning: elsewhere a start rebuilds the state, and a backup with a
// damaged checkpoint is better than none.
func checkState(fs vfs.FS, dir string, sources []blobtree.Source) error {
	there := map[string]*blobtree.Source{}
	for i := range sources {
		there[sources[i].Path] = &sources[i]
	}
	damaged := func(path string, err error) error {
		return NotMade(fmt.Errorf("%s is damaged: %w. The log was trimmed, so only a backup has the state: stop the service, and if muster check names it as lost, restore the newest backup with what is left of the log", fs.PathJoin(dir, path), err))
	}
	for i := range sources {
		checkpoint, is := strings.CutSuffix(sources[i].Path, "/"+statecheck.FileManifest)
		if !is || !isCheckpoint(strings.Split(checkpoint, "/")) {
			continue
		}
		sums, err := statecheck.Sums(fs, fs.PathDir(sources[i].From))
		if err != nil {
			return damaged(sources[i].Path, err)
		}
		for file, want := range sums {
			file = path.Join(checkpoint, file)
			s := there[file]
			if s == nil {
				return damaged(file, errors.New("the file is missing"))
			}
			s.Check = func(size int64, crc32 uint32) error {
				switch {
				case size != want.Size:
					return damaged(file, fmt.Errorf("it has %d bytes instead of %d", size, want.Size))
				case crc32 != want.CRC32:
					return damaged(file, fmt.Errorf("its checksum is %08x instead of %08x", crc32, want.CRC32))
				}
				return nil
			}
		}
	}
	return nil
}

// isCheckpoint reports whether these are the names of the directories above a file of a
// checkpoint, state/p<n>/checkpoints/<offset>. What is unfinished, damaged or of another log
// has something before the offset.
func isCheckpoint(names []string) bool {
	return len(names) == 4 && names[0] == "state" && names[2] == "checkpoints" && strings.Trim(names[3], "0123456789") == ""
}
