package backup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"gocloud.dev/blob/fileblob"

	"github.com/musterhq/muster/eventlog/file"
)

// FileMade says in a data directory to which directories its backups went. It is how a disk
// that is not mounted is told from a new place: both are an empty directory. Backups do not
// contain it, so that a restored directory begins without.
const FileMade = "backups.json"

// mostPlaces is how many directories are noted, those with the newest backups.
const mostPlaces = 32

// made is the content of FileMade.
type made struct {
	Log    string   `json:"log"`    // the identity of the log, in hexadecimal
	Places []madeAt `json:"places"` // the one with the newest backup last
}

type madeAt struct {
	Directory string `json:"directory"`
	// First and Newest are the names of the first and the newest backup that were made there.
	// First may be empty, as some builds did not note it.
	First  string `json:"first,omitempty"`
	Newest string `json:"newest"`
}

// directoryOf is the directory of a URL, empty for other storage.
func directoryOf(place string) string {
	u, err := url.Parse(place)
	if err != nil || u.Scheme != fileblob.Scheme || u.Path == "" {
		return ""
	}
	return filepath.Clean(filepath.FromSlash(u.Path))
}

// MadeBefore is the name of the newest backup that the data directory made at a directory's
// URL, empty where it made none.
func MadeBefore(fs vfs.FS, data, place string) string {
	o := Options{FS: fs, Dir: data, URL: place}
	id, err := o.logID()
	if err != nil {
		return ""
	}
	return o.madeBefore(data, id).Newest
}

// madeBefore is what is noted of o.URL, the zero value for nothing.
func (o *Options) madeBefore(data, log string) madeAt {
	return readMade(o.FS, data, log).at(directoryOf(o.URL))
}

// at is what is noted of a directory, the zero value for nothing.
func (m *made) at(dir string) madeAt {
	for _, p := range m.Places {
		if _, _, ok := parseName(p.Newest); ok && dir != "" && p.Directory == dir {
			return p
		}
	}
	return madeAt{}
}

// checkThere refuses a directory in which backups of the data directory were made, and that
// has none of them: they are on a disk that is not mounted, and a whole backup would go to the
// disk below. have are the backups that are there. People may remove old backups, and rename
// one that a wrong clock named: the first or the newest is there.
func (o *Options) checkThere(data, log string, have []string) error {
	was := o.madeBefore(data, log)
	missing := fmt.Sprintf("the backups that were made in %s before, the newest %s, are not there", was.Directory, was.Newest)
	switch {
	case was.Newest == "" || slices.Contains(have, was.Newest) || slices.Contains(have, was.First):
		return nil
	case len(have) > 0 && was.First == "":
		return nil // cannot be told
	case len(have) > 0:
		return fmt.Errorf("%s, but others: mount the disk that has them. To continue with those that are there, remove %s", missing, o.FS.PathJoin(data, FileMade))
	}
	manifests := o.FS.PathJoin(was.Directory, prefix, "manifests")
	if _, err := o.FS.Stat(manifests); err == nil {
		return nil
	}
	return fmt.Errorf("%s: mount the disk that has them. To begin anew there, make the directory %s", missing, manifests)
}

// noteMade notes a backup that was made where there were so many before.
func (o *Options) noteMade(data, log, name string, there int) error {
	dir := directoryOf(o.URL)
	if dir == "" {
		return nil
	}
	m, first := readMade(o.FS, data, log), name
	if was := m.at(dir); there > 0 {
		first = cmp.Or(was.First, was.Newest, name)
	}
	m.Places = slices.DeleteFunc(m.Places, func(p madeAt) bool { return p.Directory == dir })
	m.Places = append(m.Places, madeAt{dir, first, name})
	m.Places = m.Places[max(0, len(m.Places)-mostPlaces):]
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return file.ReplaceFile(o.FS, data, FileMade, append(b, '\n'))
}

// readMade reads FileMade of a log. One that cannot be read, or is another log's, is as none:
// it is only a caution, and the next backup makes it again.
func readMade(fs vfs.FS, data, log string) *made {
	none := &made{Log: log}
	f, err := fs.Open(fs.PathJoin(data, FileMade))
	if err != nil {
		return none
	}
	defer f.Close()
	var m made
	if b, err := io.ReadAll(io.LimitReader(f, 1<<20)); err != nil || json.Unmarshal(b, &m) != nil || m.Log != log {
		return none
	}
	return &m
}
