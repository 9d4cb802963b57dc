package uploads

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/musterhq/muster/api"
)

// saved is what upload.json has of an upload. Times are Unix milliseconds. The order of
// the fields, embedded ones in their place, is that of the members in the file.
type saved struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Status    string `json:"status"`
	Bytes     int64  `json:"bytes"`
	CreatedMs int64  `json:"created_ms"`
	StartedMs int64  `json:"started_ms,omitempty"`
	EndedMs   int64  `json:"ended_ms,omitempty"`
	// Queue is the place in the queue, by which imports are worked off.
	Queue int64 `json:"queue,omitempty"`

	fileFacts
	Plan api.ImportPlan `json:"plan"`
	progress
	Error string `json:"error,omitempty"`
	// Cancel says that a user cancelled the import; the window at hand is finished first. It
	// is answered once it is stored: a start must not import the rest.
	Cancel bool `json:"cancel,omitempty"`
}

// fileFacts are what a look at the whole file found, once it is complete.
type fileFacts struct {
	Hash string `json:"hash,omitempty"`
	// Sum is the SHA-256 of the file where rows were overwritten since, which Hash does not
	// tell; [sumUnknown] while that is done.
	Sum    string   `json:"sum,omitempty"`
	Rows   uint64   `json:"rows,omitempty"`
	Header []string `json:"header,omitempty"`
	Types  []string `json:"types,omitempty"`
}

// progress is how far the import is, in rows of the file.
type progress struct {
	// Read rows are behind us; Stored is how many rows of the file the state had when the
	// import began.
	Read       uint64 `json:"read,omitempty"`
	Stored     uint64 `json:"stored,omitempty"`
	Taken      uint64 `json:"taken,omitempty"`
	Duplicates uint64 `json:"duplicates,omitempty"`
	Refused    uint64 `json:"refused,omitempty"`
	// RefusedBytes is how much of refused.jsonl holds.
	RefusedBytes int64 `json:"refused_bytes,omitempty"`
}

// upload is one upload in memory. Its fields are under the lock of [Uploads].
type upload struct {
	// content is held while the file of an upload that is not started is changed: parts come
	// while rows of erased people are overwritten. It is taken before the lock of [Uploads].
	content sync.Mutex
	saved
	account  uint64
	dir      string
	refusals []api.ImportRefusal // the first ones
	rate     float64
	busy     bool // a part is being stored, or the import works on it
	// searchedTo is the offset behind the account's newest erasure when the last look through
	// the file began; -1 asks for a look: there was none, it failed, or a part or a plan
	// came since.
	searchedTo int64
}

// sumUnknown stands for the checksum of a file that is being changed: a crash between may
// leave any part of the change.
const sumUnknown = "unknown"

const (
	nameSaved   = "upload.json"
	nameContent = "content.csv"
	nameRefused = "refused.jsonl"
	nameResult  = "refused.csv"
)

func (u *upload) path(name string) string { return filepath.Join(u.dir, name) }

func (u *upload) ended() bool {
	return slices.Contains([]string{api.ImportDone, api.ImportCancelled, api.ImportFailed}, u.Status)
}

func (u *upload) started() bool { return u.Status == api.ImportQueued || u.Status == api.ImportRunning }

// hasRows reports whether rows of the file are stored.
func (u *upload) hasRows() bool { return !u.ended() || u.Refused > 0 }

// save makes what is known of the upload durable.
func (u *upload) save() error {
	b, err := json.Marshal(&u.saved)
	if err != nil {
		return err
	}
	return replaceFile(u.path(nameSaved), b)
}

// replaceFile replaces a file by one that only its owner may read: it is whole and
// durable, or as it was.
func replaceFile(path string, b []byte) (err error) {
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// appendFile writes behind the first size bytes of a file, durably.
func appendFile(path string, size int64, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		_, err = f.WriteAt(b, size)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// removeContent removes the file of an upload that has ended.
func (u *upload) removeContent() error {
	var all error
	for _, name := range []string{nameContent, nameRefused} {
		if err := os.Remove(u.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}
