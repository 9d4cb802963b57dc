// Package datacheck looks whether a stopped data directory is whole, and changes nothing.
package datacheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/cmd/muster/internal/backup"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/resolver/statecheck"
)

// Verdict is what is to be done about something, in the order of how bad it is.
type Verdict string

const (
	Whole Verdict = "ok"
	// Note is something that a start removes or passes over.
	Note Verdict = "note"
	// Repairable follows from what else is there: a start rebuilds it.
	Repairable Verdict = "damaged"
	// Lost can only come from a backup, or from where else it is kept.
	Lost Verdict = "lost"
)

// Finding is what a check says of one thing.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Path is the file or directory.
	Path string `json:"path"`
	// Text says what is there, or what is wrong and where.
	Text string `json:"text"`
	// Remedy says what to do, empty where nothing is.
	Remedy string `json:"remedy,omitempty"`
	// Beside reports that nothing else follows from it, so that muster repair continues.
	Beside bool `json:"-"`
	// Aside reports that muster repair gives it another name.
	Aside bool `json:"-"`
}

func (f Finding) String() string { return fmt.Sprintf("%-7s  %s", f.Verdict, f.Told()) }

// Told is the finding without its verdict: the path, what is there, and what to do.
func (f Finding) Told() string {
	s := fmt.Sprintf("%s: %s", f.Path, f.Text)
	if f.Remedy != "" {
		s += ". " + f.Remedy
	}
	return s
}

// Report is what a check found, in the order of the directory's layers.
type Report struct {
	Findings []Finding `json:"findings"`
	// Log names the log; Starts and Ends are the bounds of its partitions.
	Log    string  `json:"log"`
	Starts []int64 `json:"starts"`
	Ends   []int64 `json:"ends"`
	// RepairLog reports that small files of the log are to be made from its segments.
	RepairLog bool `json:"-"`
	// Foreign are the checkpoints of other logs, which are to be set aside.
	Foreign []string `json:"-"`
	Stale   Stale    `json:"-"`
	// Elsewhere reports that history is in ClickHouse: muster repair cannot reach it, and a
	// start with --clickhouse rebuilds what is damaged.
	Elsewhere bool `json:"-"`

	// What Deep needs: the log's identity, whether it is whole, and how far history is, nil
	// where it cannot be compared.
	logID     uint64
	logWhole  bool
	inspected *duckdb.Inspection
}

// Verdict is the worst of all findings.
func (r *Report) Verdict() Verdict {
	worst := Whole
	for _, f := range r.Findings {
		if f.Verdict == Lost || f.Verdict == Repairable && worst != Lost {
			worst = f.Verdict
		}
	}
	return worst
}

// Mendable reports whether muster repair has something to do and nothing in its way.
func (r *Report) Mendable() bool {
	return !r.Hopeless() && slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Verdict == Repairable })
}

// Serves reports whether only a start mends what is damaged, since history is in
// ClickHouse, and there is nothing that muster repair prepares for one.
func (r *Report) Serves() bool {
	return r.Elsewhere && !r.RepairLog && len(r.Foreign) == 0 && !r.Stale.Any() && r.Verdict() == Repairable
}

// Hopeless reports whether something is lost that the rest follows from.
func (r *Report) Hopeless() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Verdict == Lost && !f.Beside })
}

func (r *Report) add(v Verdict, path, text, remedy string) {
	r.Findings = append(r.Findings, Finding{Verdict: v, Path: path, Text: text, Remedy: remedy})
}

// addAside is add of something that is to be set aside, and rebuilt.
func (r *Report) addAside(path, text, remedy string) {
	r.Findings = append(r.Findings, Finding{Verdict: Repairable, Path: path, Text: text, Remedy: remedy, Aside: true})
}

const (
	remedyStart   = "A start or muster repair rebuilds it from the log"
	remedyServe   = "A start with --clickhouse rebuilds it from the log"
	remedyForeign = "If this log is the right one, muster repair sets the checkpoint aside and rebuilds the state; else put the log back that belongs to it. A start is refused until then"
	remedyBackup  = "Restore a backup: muster restore, with --log for what is left of the log"
)

// Directory checks the data directory, whose lock the caller holds. The error says that
// reading itself failed; what is wrong is in the report.
func Directory(ctx context.Context, dir string) (*Report, error) {
	r := &Report{}
	fsys := vfs.Default
	if _, err := os.Stat(filepath.Join(dir, "log.json")); err == nil {
		return nil, errors.New("the log of the directory is in Kafka: this is for directories with a log of their own. A node compares its files at each start, and rebuilds from the topic what is damaged; all of it once the directory is moved away")
	}
	if err := backup.CheckWhole(fsys, dir); err != nil {
		r.add(Lost, dir, err.Error(), "")
		return r, nil
	}
	if err := checkKinds(dir); err != nil {
		return nil, err
	}
	elsewhere, err := engine.HistoryElsewhere(dir)
	if err != nil {
		return nil, err
	}
	r.Elsewhere = elsewhere
	if err := r.layout(dir); err != nil {
		return nil, err
	}
	if err := r.captured(dir); err != nil {
		return nil, err
	}
	if err := r.uploads(ctx, dir); err != nil {
		return nil, err
	}
	logDir := filepath.Join(dir, "log")
	switch info, err := os.Stat(logDir); {
	case errors.Is(err, fs.ErrNotExist):
		r.add(Lost, logDir, "the log is missing", remedyBackup)
		return r, nil
	case err == nil && !info.IsDir():
		r.add(Lost, logDir, "the log is missing: a file is where its directory must be", "Put the directory back as it was, or restore a backup")
		return r, nil
	}
	checked, err := file.Check(fsys, logDir)
	if err != nil {
		return nil, err
	}
	for _, f := range checked.Findings {
		switch {
		case f.Err == nil:
			r.add(Whole, f.Path, f.Note, "")
		case f.Repairable:
			r.RepairLog = true
			r.add(Repairable, f.Path, f.Err.Error(), unlessSaid(f.Err, "muster repair rebuilds it from the segment files"))
		default:
			r.add(Lost, f.Path, f.Err.Error(), unlessSaid(f.Err, remedyBackup))
		}
	}
	if len(checked.Ends) == 0 {
		return r, nil
	}
	r.logID, r.logWhole = checked.ID, checked.Whole()
	r.Log, r.Starts, r.Ends = engine.LogName(checked.ID), checked.Starts, checked.Ends
	// How far the log went behind its lost part is unknown, so state and history are
	// not beyond its end.
	ends := slices.Clone(r.Ends)
	if checked.Lost() {
		for i := range ends {
			ends[i] = math.MaxInt64
		}
	}
	state := filepath.Join(dir, "state")
	for i := range ends {
		found, err := statecheck.Inspect(fsys, state, r.Log, i, r.Starts[i], ends[i], func(offset int64) (record []byte, err error) {
			if !checked.Whole() {
				return nil, nil
			}
			err = file.Replay(ctx, fsys, logDir, checked.ID, i, offset, offset+1, func(_ int64, data []byte) error {
				record = bytes.Clone(data)
				return nil
			})
			return record, err
		})
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			switch {
			case f.Err == nil && f.Offset < 0:
				r.add(Note, f.Path, f.Note, "")
			case f.Err == nil:
				r.add(Whole, f.Path, f.Note, "")
			case f.Foreign && f.Repairable:
				r.Foreign = append(r.Foreign, f.Path)
				r.addAside(f.Path, f.Err.Error(), remedyForeign)
			case f.Repairable && checked.Whole() && elsewhere:
				r.add(Repairable, f.Path, f.Err.Error(), remedyServe)
			case f.Repairable && checked.Whole():
				r.add(Repairable, f.Path, f.Err.Error(), remedyStart)
			case f.Repairable:
				r.add(Repairable, f.Path, f.Err.Error(), "An older checkpoint serves, once the log is whole again")
			default:
				r.add(Lost, f.Path, f.Err.Error(), remedyBackup)
			}
		}
	}
	if elsewhere {
		r.add(Whole, filepath.Join(dir, engine.HistoryMark), "history is in ClickHouse, where this does not look", "")
		return r, nil
	}
	return r, r.history(ctx, dir, ends)
}

// LostHistory says why the history of the directory, whose lock the caller holds, is no copy
// of the rows of its log as [file.Check] found it, and what to do, where only a backup has
// them. It is nil where history is elsewhere, or can be rebuilt.
func LostHistory(ctx context.Context, dir string, log file.Checked) error {
	if elsewhere, err := engine.HistoryElsewhere(dir); err != nil || elsewhere {
		return err
	}
	r := &Report{Log: engine.LogName(log.ID), Starts: log.Starts, Ends: log.Ends}
	if err := r.history(ctx, dir, log.Ends); err != nil {
		return err
	}
	for _, f := range r.Findings {
		if f.Verdict == Lost {
			return errors.New(f.Told())
		}
	}
	return nil
}

// unlessSaid is a remedy, or nothing where the error names one itself.
func unlessSaid(err error, remedy string) string {
	var damaged *eventlog.CorruptError
	if errors.As(err, &damaged) {
		return ""
	}
	return remedy
}

// known are the names in a data directory.
var known = []string{"LOCK", "log", "state", engine.HistoryMark, engine.HistoryFile, engine.HistoryFile + ".wal", engine.HistoryFile + ".tmp", engine.HistoryFile + duckdb.ColumnsSuffix, "outbox", engine.UploadsDir, "moved.json", "migration.json", "control.sock", engine.BackupDir, backup.FileMade, backup.FileMade + ".tmp"}

// layout looks at the names in the directory.
func (r *Report) layout(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch name := e.Name(); {
		case name == engine.BackupDir:
			r.add(Note, path, "left by a backup that was cut off; a start removes it", "")
		case name == "moved.json":
			if err := engine.CheckMovedFile(dir); err != nil {
				r.add(Lost, path, err.Error(), "If muster migrate never moved this directory, remove it. A start is refused until then")
				continue
			}
			r.add(Note, path, "the directory was moved by muster migrate, and is not served any more", "")
		case name == "state.damaged", strings.HasPrefix(name, engine.HistoryFile+".damaged-"):
			r.add(Note, path, "set aside as damaged by an earlier start; it may be removed", "")
		case r.Elsewhere && name == engine.HistoryFile:
			r.add(Note, path, "history is in ClickHouse; a start with --clickhouse removes the file once all its rows are there", "")
		case !slices.Contains(known, name):
			r.add(Note, path, "not a file of muster's; it is passed over", "")
		}
	}
	return nil
}

// history checks the history file against the log, which goes as far as ends, and the
// state.
func (r *Report) history(ctx context.Context, dir string, ends []int64) error {
	path := filepath.Join(dir, engine.HistoryFile)
	whole := !slices.ContainsFunc(r.Starts, func(start int64) bool { return start > 0 })
	wrong := func(text string) {
		if whole {
			r.add(Repairable, path, text, remedyStart)
		} else {
			r.add(Lost, path, text+", and the log was trimmed", remedyBackup)
		}
	}
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		wrong("the file is missing, unless history is in ClickHouse, which the next start with --clickhouse notes")
		return nil
	case err != nil:
		return err
	}
	found, err := duckdb.Inspect(ctx, path, r.Log, duckdb.Options{})
	if err != nil {
		if !duckdb.Damaged(err) {
			return err
		}
		wrong(err.Error())
		return nil
	}
	for i, end := range ends {
		at := found.Positions[i]
		behind, err := statecheck.History(vfs.Default, filepath.Join(dir, "state"), r.Log, i, r.Starts[i], end, at)
		if err != nil {
			r.add(Lost, path, err.Error(), "")
			return nil
		}
		if behind {
			r.add(Repairable, path, fmt.Sprintf("it has the rows of all records below %d only, and lacks rows of later ones that the state is beyond", at), remedyStart)
			return nil
		}
	}
	r.inspected = &found
	if found.WAL != nil {
		// Whatever it had, the log has from the state on.
		r.add(Repairable, path+".wal", found.WAL.Error(), "A start or muster repair passes over it, and rebuilds rows that it had from the log")
		return nil
	}
	text := fmt.Sprintf("%d events, of all records below %s", found.Rows, offsets(found.Positions, len(r.Ends)))
	if info, err := os.Stat(path + ".wal"); err == nil && info.Size() > 0 {
		text += fmt.Sprintf("; %d bytes of it in %s.wal, which the next start moves into the file", info.Size(), filepath.Base(path))
	}
	r.add(Whole, path, text, "")
	return nil
}

func offsets(positions map[int]int64, partitions int) string {
	var out []string
	for i := range partitions {
		out = append(out, fmt.Sprint(positions[i]))
	}
	return strings.Join(out, ", ")
}
