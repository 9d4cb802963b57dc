package backup

import (
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
	Newest    string `json:"newest"` // the name of the newest backup that was made there
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
	return o.madeBefore(data, id)
}

func (o *Options) madeBefore(data, log string) string {
	dir := directoryOf(o.URL)
	for _, p := range readMade(o.FS, data, log).Places {
		if _, _, ok := parseName(p.Newest); ok && dir != "" && p.Directory == dir {
			return p.Newest
		}
	}
	return ""
}

// checkThere refuses a directory in which backups of the data directory were made, and that
// has none: they are on a disk that is not mounted, and a whole backup would go to the disk
// below. have are the backups that are there.
func (o *Options) checkThere(data, log string, have []string) error {
	newest := o.madeBefore(data, log)
	if newest == "" || len(have) > 0 {
		return nil
	}
	dir := directoryOf(o.URL)
	manifests := o.FS.PathJoin(dir, prefix, "manifests")
	if _, err := o.FS.Stat(manifests); err == nil {
		return nil
	}
	return fmt.Errorf("the backups that were made in %s before, the newest %s, are not there: mount the disk that has them. To begin anew there, make the directory %s", dir, newest, manifests)
}

// noteMade notes a backup that was made.
func (o *Options) noteMade(data, log, name string) error {
	dir := directoryOf(o.URL)
	if dir == "" {
		return nil
	}
	m := readMade(o.FS, data, log)
	m.Places = slices.DeleteFunc(m.Places, func(p madeAt) bool { return p.Directory == dir })
	m.Places = append(m.Places, madeAt{dir, name})
	m.Places = m.Places[max(0, len(m.Places)-mostPlaces):]
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return file.ReplaceFile(o.FS, data, FileMade, append(b, '\n'))
}

// readMade reads FileMade of a log. One that cannot be read, or is another log's, is as none:
// it is only a caution, and the next backup makes it again.
func readMade(fs vfs.FS, data, log string) made {
	none := made{Log: log}
	f, err := fs.Open(fs.PathJoin(data, FileMade))
	if err != nil {
		return none
	}
	defer f.Close()
	var m made
	if b, err := io.ReadAll(io.LimitReader(f, 1<<20)); err != nil || json.Unmarshal(b, &m) != nil || m.Log != log {
		return none
	}
	return m
}
