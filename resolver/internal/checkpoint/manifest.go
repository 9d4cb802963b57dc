package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// ManifestVersion is the version of the manifests that are written, and the oldest that is
// read.
const ManifestVersion = 2

// Manifest lists what belongs to a checkpoint.
type Manifest struct {
	// Version is that of the manifest's form, 0 for the empty state; ApplyVersion that of
	// the rules of the build that wrote it.
	Version      int `json:"version"`
	ApplyVersion int `json:"apply_version"`
	// Log names the log that the state follows from.
	Log string `json:"log"`
	// Next is the offset of the first record that is not in the state, LogTime the time of
	// the last that is, in Unix milliseconds.
	Next    int64 `json:"next"`
	LogTime int64 `json:"log_time"`
	// ProfileIndex is the version of the index of profiles, 0 where there is none.
	ProfileIndex int `json:"profile_index,omitempty"`
	// Reach is the version of the sets of reachable profiles, 0 where there are none.
	Reach    int    `json:"reach,omitempty"`
	NextTask uint64 `json:"next_task"`
	// Rules is the newest version of the rules that the records of the state have said, 0
	// before [state.RulesNoted].
	Rules int `json:"rules,omitempty"`
	// Epoch is the newest that the state knows, nil for none.
	Epoch    *state.Epoch `json:"epoch,omitempty"`
	Runs     []string     `json:"runs"`     // oldest first
	Segments []string     `json:"segments"` // the whole one first
	Spool    []SpoolFile  `json:"spool"`
	// Files are all files of the checkpoint but the manifest, in order of paths.
	Files []fileSum `json:"files"`
}

// SpoolFile names the file with the rows of the records From to To (exclusive), which
// history had not stored.
type SpoolFile struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	File string `json:"file"`
}

// ErrOtherLog means that a checkpoint was made from another log than the one here.
var ErrOtherLog = errors.New("the checkpoint belongs to another log")

// ReadManifest reads the manifest of a checkpoint, and the ids of the newest records that its
// state has applied, the oldest first.
func (c *Dir) ReadManifest(offset int64) (Manifest, []eventlog.RecordID, error) {
	return c.ReadManifestIn(Name(offset), offset)
}

// ReadManifestIn is ReadManifest for the checkpoint at offset that is in a directory of this
// name, such as one that was fetched.
func (c *Dir) ReadManifestIn(name string, offset int64) (Manifest, []eventlog.RecordID, error) {
	var f Manifest
	b, err := statefiles.ReadChecked(c.FS, c.Path(DirCheckpoints, name, FileManifest))
	if err != nil {
		return f, nil, err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, nil, statefiles.Damaged(c.Path(DirCheckpoints, name, FileManifest), "%v", err)
	}
	if f.Version > ManifestVersion || f.ApplyVersion > state.ApplyVersion {
		return f, nil, fmt.Errorf("checkpoint %s: %w: it has version %d of the state machine's rules, this build has version %d. %s", name, statefiles.ErrNewer, f.ApplyVersion, state.ApplyVersion, statefiles.RemedyNewer)
	}
	if f.Version < ManifestVersion || f.ApplyVersion < state.OldestRules {
		return f, nil, fmt.Errorf("checkpoint %s: %w: it has version %d of the state machine's rules, this build reads versions from %d on. %s", name, statefiles.ErrOlder, f.ApplyVersion, state.OldestRules, statefiles.RemedyOlder)
	}
	if f.Next != offset {
		return f, nil, statefiles.Damaged(c.Path(DirCheckpoints, name, FileManifest), "it is the manifest of checkpoint %d", f.Next)
	}
	if f.Log != c.Log {
		return f, nil, fmt.Errorf("%w: %s is of %s, the log here is %s", ErrOtherLog, c.Path(DirCheckpoints, name), f.Log, c.Log)
	}
	if b, err = statefiles.ReadChecked(c.FS, c.Path(DirCheckpoints, name, FileRecords)); err != nil {
		return f, nil, err
	}
	ids := make([]eventlog.RecordID, len(b)/16)
	for i := range ids {
		copy(ids[i][:], b[i*16:])
	}
	return f, ids, nil
}

// HistoryFrom is the first record whose rows are in the spool, or come from the log
// behind the checkpoint.
func (f *Manifest) HistoryFrom() int64 {
	if len(f.Spool) > 0 {
		return f.Spool[0].From
	}
	return f.Next
}

// EpochNumber is the number of the epoch under which the state was reached, 0 for none.
func (f *Manifest) EpochNumber() uint64 {
	if f.Epoch == nil {
		return 0
	}
	return f.Epoch.Number
}
