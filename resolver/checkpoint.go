package resolver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/sortedkeys"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// A checkpoint is a directory that holds all state of a partition at one
// offset:
//
//	checkpoints/<offset>/pebble/    documents, headers, identities, entities
//	checkpoints/<offset>/keys/      idempotency runs
//	checkpoints/<offset>/segments/  state of the segment engines
//	checkpoints/<offset>/spool/     rows history had not stored
//	checkpoints/<offset>/records    recent record ids
//	checkpoints/<offset>/MANIFEST   what belongs to it, with a checksum
//
// Large files are hard links to the live ones, so writing a checkpoint costs
// what changed. It is published by renaming the finished directory.
const (
	dirCheckpoints = "checkpoints"
	dirLive        = "live"
	dirPebble      = "pebble"
	dirKeys        = "keys"
	dirSegments    = "segments"
	dirSpool       = "spool"
	fileManifest   = "MANIFEST"
	fileRecords    = "records"
	tmpPrefix      = "tmp-"

	// keptCheckpoints is how many checkpoints are kept: the newest, and one to
	// fall back to.
	keptCheckpoints = 2
)

// manifest lists what belongs to a checkpoint.
type manifest struct {
	Version      int `json:"version"`
	ApplyVersion int `json:"apply_version"`
	// Log names the log that the state follows from.
	Log     string `json:"log"`
	Next    int64  `json:"next"`
	LogTime int64  `json:"log_time"`
	// ProfileIndex is the version of the index of profiles, 0 where there is none.
	ProfileIndex int `json:"profile_index,omitempty"`
	// Reach is the version of the sets of who can be sent to, 0 where there are none.
	Reach    int             `json:"reach,omitempty"`
	NextTask uint64          `json:"next_task"`
	Epoch    *Epoch          `json:"epoch,omitempty"`
	Runs     []string        `json:"runs"`     // oldest first
	Segments []string        `json:"segments"` // the whole one first
	Spool    []manifestSpool `json:"spool"`
	// Files are all files of the checkpoint but the manifest, in order of paths.
	Files []fileSum `json:"files"`
}

type manifestSpool struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	File string `json:"file"`
}

const (
	manifestVersion = 2
	// manifestVersionSums is the first with the log's name and the files' checksums.
	manifestVersionSums = 2
)

// frozen is the state of a generation, handed to the checkpoint writer. None
// of it is changed any more.
type frozen struct {
	manifest
	records  []eventlog.RecordID
	accounts []frozenAccount
	numbers  []uint64 // account number by index
	docs     map[state.DocKey][]byte
	entities map[string][]byte
	index    *sortedkeys.Changes
	keys     dedup.Answers
	runs     []*dedup.Run
	items    []*feed.Item
	engines  []frozenEngine
	segments []segmentFile // the chain so far
	// wholeSegments says that engines hold all values.
	wholeSegments bool
	scrub         []scrubbed // documents that are to leave Pebble's files
	dropKeys      int64      // idempotency keys up to this log time are expired
}

type frozenAccount struct {
	number     uint64
	identities []profile.IdentifierChange
	pages      map[uint32]*profile.HeaderPage
}

// freeze hands over what changed since the last checkpoint. It takes time in
// proportion to nothing but the numbers of accounts, pages and event types
// changed.
func (m *Machine) freeze() *frozen {
	f := &frozen{
		segments: m.segmentFiles, wholeSegments: wholeSegments(m.segmentFiles),
		manifest: manifest{Version: manifestVersion, ApplyVersion: ApplyVersion, Next: m.next, LogTime: m.logTime, NextTask: m.nextTask, ProfileIndex: profileIndexVersion, Reach: reachVersion, Epoch: m.epochEntity()},
		records:  m.records.list(),
		runs:     slices.Clone(m.keys.Runs),
		dropKeys: m.logTime,
		scrub:    m.scrub,
	}
	m.scrub = nil
	for _, a := range m.byIndex {
		for _, t := range a.dirty {
			m.store.PutEntity(state.EntityKey(a.number, state.EntityType, t.Key), mustJSON(t))
			t.dirty = false
		}
		a.dirty = a.dirty[:0]
		m.storeLooked(a)
		m.storeSets(a)
		m.storeRuns(a)
		m.storeEndpoints(a)
		m.storeFlows(a)
		f.accounts = append(f.accounts, frozenAccount{a.number, a.ids.Changed, a.headers.Freeze()})
		a.ids.Changed = nil
		f.numbers = append(f.numbers, a.number)
		f.engines = append(f.engines, frozenEngine{a.number, a.engine.Freeze(f.wholeSegments)})
		f.dropKeys = min(f.dropKeys, a.keysFromMs(m.logTime))
		m.tally(a)
	}
	f.docs, f.entities = m.store.Freeze()
	f.index = m.store.FrozenIndex
	f.keys = m.keys.Freeze()
	return f
}

// thaw ends the checkpoint that began with freeze.
func (m *Machine) thaw(w written) {
	m.store.Thaw()
	m.keys.SetRuns(w.runs)
	m.segmentFiles = w.segments
}

// written are the files that now hold what was frozen.
type written struct {
	runs     []*dedup.Run
	segments []segmentFile
}

// checkpoints writes and opens the checkpoints of one partition.
type checkpoints struct {
	fs  vfs.FS
	dir string // of the partition
	// source is the partition's directory that checkpoints are loaded from; empty is dir.
	source string
	log    string  // names the log that the state follows from
	took   *phases // of the opening; nil when none is under way
	// damaged is called with damage to the store's files that is found while it is open.
	damaged func(error)
	// sums are the files of the checkpoint loaded or written last, by path. Used by
	// one goroutine: the one that loads, then the one that writes.
	sums map[string]fileSum
	disk *state.Disk // nil where there is always space
	// fatal is Options.End.
	fatal func(why string)
}

func (c *checkpoints) path(parts ...string) string {
	return c.fs.PathJoin(append([]string{c.dir}, parts...)...)
}

func checkpointName(offset int64) string { return fmt.Sprintf("%020d", offset) }

// list returns the offsets of the checkpoints, oldest first.
func (c *checkpoints) list() ([]int64, error) {
	names, err := c.fs.List(c.path(dirCheckpoints))
	if err != nil && !isNotExist(err) && !misplaced(err) {
		return nil, err
	}
	var out []int64
	for _, n := range names {
		if o, err := strconv.ParseInt(n, 10, 64); err == nil && n == checkpointName(o) {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return out, nil
}

// errOtherLog means that a checkpoint was made from another log than the one here.
var errOtherLog = errors.New("the checkpoint belongs to another log")

// prepare makes the partition's directories and clears what a crash left.
func (c *checkpoints) prepare() error {
	if err := c.fs.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	// The names of the directories above must last, too: what is synced in a directory
	// goes with it when a machine fails before its name was.
	above := c.fs.PathDir(c.dir)
	if err := errors.Join(statefiles.SyncDir(c.fs, above), statefiles.SyncDir(c.fs, c.fs.PathDir(above))); err != nil {
		return err
	}
	for _, d := range []string{dirCheckpoints, dirKeys, dirSegments, dirSpool} {
		if err := c.fs.MkdirAll(c.path(d), 0o700); err != nil {
			return err
		}
	}
	names, err := c.fs.List(c.path(dirCheckpoints))
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(n, tmpPrefix) {
			if err := c.fs.RemoveAll(c.path(dirCheckpoints, n)); err != nil {
				return err
			}
		}
	}
	return errors.Join(statefiles.SyncDir(c.fs, c.dir), c.fs.RemoveAll(c.path(dirLive)))
}

// moveOn writes a checkpoint of a machine that serves no requests, which frees the memory of
// what changed, and prunes those before. feed has the rows that are not stored yet, nil
// for none.
func (c *checkpoints) moveOn(m *Machine, feed *feed.Feed) error {
	f := m.freeze()
	w, err := c.write(f, m.store.DB, feed, nil)
	if err != nil {
		return err
	}
	m.thaw(w)
	if err := errors.Join(c.discardRuns(f.runs, w.runs), c.discardSegments(f.segments, w.segments)); err != nil {
		return err
	}
	_, err = c.prune(-1)
	return err
}

// write makes the checkpoint durable. Called by one goroutine.
// Without rests it is written as fast as that goes. After an error it has removed
// what it made, and may be called again.
func (c *checkpoints) write(f *frozen, db *pebble.DB, feed *feed.Feed, rests *throttleLimits) (w written, err error) {
	defer func() {
		if err != nil {
			c.discard(f, w)
			w = written{}
		}
	}()
	if err := writeGeneration(db, f, rests, c.disk); err != nil {
		return w, fmt.Errorf("write generation: %w", err)
	}
	if w.runs, err = c.writeRuns(f); err != nil {
		return w, fmt.Errorf("write idempotency keys: %w", err)
	}
	if w.segments, err = c.writeSegments(f); err != nil {
		return w, fmt.Errorf("write segment state: %w", err)
	}
	if err := c.publish(f, db, feed, w); err != nil {
		return w, fmt.Errorf("publish checkpoint %d: %w", f.Next, err)
	}
	return w, nil
}

// discard removes what an attempt has written, as far as that goes: it needs space.
func (c *checkpoints) discard(f *frozen, w written) {
	_ = c.fs.RemoveAll(c.path(dirCheckpoints, tmpPrefix+checkpointName(f.Next)))
	if w.runs != nil {
		_ = c.discardRuns(w.runs, f.runs)
	}
	if w.segments != nil {
		_ = c.discardSegments(w.segments, f.segments)
	}
}

func (c *checkpoints) publish(f *frozen, db *pebble.DB, feed *feed.Feed, w written) error {
	f.Segments, f.Runs, f.Spool = nil, nil, nil
	tmp := tmpPrefix + checkpointName(f.Next)
	if err := c.fs.RemoveAll(c.path(dirCheckpoints, tmp)); err != nil {
		return err
	}
	for _, d := range []string{"", dirKeys, dirSegments, dirSpool} {
		if err := c.fs.MkdirAll(c.path(dirCheckpoints, tmp, d), 0o700); err != nil {
			return err
		}
	}
	f.Log = c.log
	if err := writeOrigin(db, f.manifest); err != nil {
		return err
	}
	// The memtable is not part of a Pebble checkpoint without a WAL.
	if err := c.disk.Flush(db); err != nil {
		return err
	}
	if err := scrubStore(db, f.scrub); err != nil {
		return err
	}
	// Keys of the queue of enrolments have no texts of profiles.
	if slices.ContainsFunc(f.scrub, func(s scrubbed) bool { return len(s.ordinals) > 0 }) {
		if err := c.renewManifest(db, f.manifest); err != nil {
			return err
		}
	}
	if err := db.Checkpoint(c.path(dirCheckpoints, tmp, dirPebble)); err != nil {
		return err
	}
	if err := c.disk.StoreErr(); err != nil {
		return err
	}
	for _, s := range w.segments {
		f.Segments = append(f.Segments, s.name)
		if err := c.fs.Link(c.path(dirSegments, s.name), c.path(dirCheckpoints, tmp, dirSegments, s.name)); err != nil {
			return err
		}
	}
	for _, r := range w.runs {
		f.Runs = append(f.Runs, r.Name)
		if err := c.fs.Link(c.path(dirKeys, r.Name), c.path(dirCheckpoints, tmp, dirKeys, r.Name)); err != nil {
			return err
		}
	}
	for _, it := range f.items {
		if feed.Position() >= it.To {
			continue
		}
		if err := feed.ToFile(it, false); err != nil {
			return err
		}
		if err := c.fs.Link(c.path(dirSpool, it.File), c.path(dirCheckpoints, tmp, dirSpool, it.File)); err != nil {
			return err
		}
		f.Spool = append(f.Spool, manifestSpool{it.From, it.To, it.File})
	}
	var ids bytes.Buffer
	for _, id := range f.records {
		ids.Write(id[:])
	}
	if err := statefiles.Write(c.fs, c.path(dirCheckpoints, tmp, fileRecords), withChecksum(ids.Bytes())); err != nil {
		return err
	}
	sums, err := c.sum(tmp, c.sums)
	if err != nil {
		return err
	}
	f.Files = sums
	if err := statefiles.Write(c.fs, c.path(dirCheckpoints, tmp, fileManifest), withChecksum(mustJSON(f.manifest))); err != nil {
		return err
	}
	for _, d := range []string{dirKeys, dirSegments, dirSpool, ""} {
		if err := statefiles.SyncDir(c.fs, c.path(dirCheckpoints, tmp, d)); err != nil {
			return err
		}
	}
	final := c.path(dirCheckpoints, checkpointName(f.Next))
	if err := c.fs.RemoveAll(final); err != nil {
		return err
	}
	if err := c.fs.Rename(c.path(dirCheckpoints, tmp), final); err != nil {
		return err
	}
	c.keepSums(sums)
	return statefiles.SyncDir(c.fs, c.path(dirCheckpoints))
}

// prune removes all but the newest checkpoints and the one at the offset pinned,
// which is being read. It returns the offset of the oldest of the newest: the log
// may be trimmed below it.
func (c *checkpoints) prune(pinned int64) (int64, error) {
	list, err := c.list()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	for ; len(list) > keptCheckpoints; list = list[1:] {
		if list[0] == pinned {
			continue
		}
		if err := c.fs.RemoveAll(c.path(dirCheckpoints, checkpointName(list[0]))); err != nil {
			return 0, err
		}
	}
	return list[0], statefiles.SyncDir(c.fs, c.path(dirCheckpoints))
}

// size is how many keys a checkpoint writes to Pebble.
func (f *frozen) size() int {
	n := len(f.docs) + len(f.entities) + f.index.Len()
	for _, a := range f.accounts {
		n += len(a.identities) + len(a.pages)
	}
	return n
}

// writeGeneration writes what changed to Pebble, most of it in the order of keys:
// that takes half the time.
func writeGeneration(db *pebble.DB, f *frozen, rests *throttleLimits, disk *state.Disk) error {
	w := batchWriter{db: db, batch: db.NewBatch(), pace: newThrottle(rests, f.size()), disk: disk}
	var key []byte
	for _, a := range f.accounts {
		for _, c := range a.identities {
			key = state.IdentityKey(key[:0], a.number, c.Hash)
			if c.Ordinal == profile.NoOrdinal {
				w.set(key, nil)
				continue
			}
			w.set(key, []byte{byte(c.Ordinal), byte(c.Ordinal >> 8), byte(c.Ordinal >> 16), byte(c.Ordinal >> 24)})
		}
		var buf []byte
		for i, p := range a.pages {
			buf = p.Append(buf[:0])
			w.set(state.PageKey(key[:0], a.number, i), buf)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(f.docs)) {
		w.set(state.DocumentKey(key[:0], f.numbers[k>>32], uint32(k)), f.docs[k])
	}
	for _, k := range slices.Sorted(maps.Keys(f.entities)) {
		w.set([]byte(k), f.entities[k])
	}
	for c := f.index.From(nil, nil); c.Valid(); c.Next() {
		if !c.Removed() {
			w.set(c.Key(), []byte{})
			continue
		}
		// A deletion has the text, too, and stays where it finds nothing to remove.
		_, found, err := db.Get(c.Key())
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if err := found.Close(); err != nil {
			return err
		}
		w.set(c.Key(), nil)
	}
	return w.finish()
}

// batchWriter commits sets (and deletes, for nil) in batches of bounded size.
type batchWriter struct {
	db    *pebble.DB
	batch *pebble.Batch
	pace  throttle
	disk  *state.Disk
	err   error
}

// batchBytes bounds a batch.
const batchBytes = 256 << 10

func (w *batchWriter) set(key, value []byte) {
	if w.err != nil {
		return
	}
	if value == nil {
		w.err = w.batch.Delete(key, nil)
	} else {
		w.err = w.batch.Set(key, value, nil)
	}
	if w.err == nil && w.batch.Len() > batchBytes {
		w.commit()
		w.batch = w.db.NewBatch()
		w.pace.worked()
	}
}

func (w *batchWriter) commit() {
	// Pebble would take a few more and then keep the writer waiting.
	if w.err = errors.Join(w.err, w.disk.StoreErr()); w.err != nil {
		w.err = errors.Join(w.err, w.batch.Close())
		return
	}
	w.err = errors.Join(w.err, w.batch.Commit(pebble.NoSync), w.batch.Close())
}

func (w *batchWriter) finish() error {
	if w.err != nil {
		return errors.Join(w.err, w.batch.Close())
	}
	w.commit()
	return w.err
}

func withChecksum(b []byte) []byte {
	return append(b, fmt.Sprintf("\ncrc32c %08x\n", crc32.Checksum(b, statefiles.Castagnoli))...)
}

const checksumSize = len("\ncrc32c 00000000\n")

func readChecked(fs vfs.FS, path string) ([]byte, error) {
	b, err := statefiles.Read(fs, path)
	switch {
	case isNotExist(err):
		return nil, statefiles.Damaged(path, "the file is missing")
	case misplaced(err):
		return nil, statefiles.Damaged(path, "it is not a file")
	case err != nil:
		return nil, err
	case len(b) < checksumSize:
		return nil, statefiles.Damaged(path, "it has %d bytes, too few", len(b))
	}
	body := b[:len(b)-checksumSize]
	if !bytes.Equal(withChecksum(slices.Clone(body)), b) {
		return nil, statefiles.Damaged(path, "its checksum does not match")
	}
	return body, nil
}

// readManifest reads the manifest of a checkpoint.
func (c *checkpoints) readManifest(offset int64) (manifest, []eventlog.RecordID, error) {
	var f manifest
	name := checkpointName(offset)
	b, err := readChecked(c.fs, c.path(dirCheckpoints, name, fileManifest))
	if err != nil {
		return f, nil, err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, nil, statefiles.Damaged(c.path(dirCheckpoints, name, fileManifest), "%v", err)
	}
	if f.Version > manifestVersion || f.ApplyVersion > ApplyVersion {
		return f, nil, fmt.Errorf("checkpoint %s: %w: it has version %d of the state machine's rules, this build has version %d. %s", name, ErrNewer, f.ApplyVersion, ApplyVersion, remedyNewer)
	}
	if f.Next != offset {
		return f, nil, statefiles.Damaged(c.path(dirCheckpoints, name, fileManifest), "it is the manifest of checkpoint %d", f.Next)
	}
	if f.Version >= manifestVersionSums && f.Log != c.log {
		return f, nil, fmt.Errorf("%w: %s is of %s, the log here is %s", errOtherLog, c.path(dirCheckpoints, name), f.Log, c.log)
	}
	if b, err = readChecked(c.fs, c.path(dirCheckpoints, name, fileRecords)); err != nil {
		return f, nil, err
	}
	ids := make([]eventlog.RecordID, len(b)/16)
	for i := range ids {
		copy(ids[i][:], b[i*16:])
	}
	return f, ids, nil
}

// restore makes the live directories those of the checkpoint: immutable files
// are linked, others copied. The zero manifest is the empty state.
func (c *checkpoints) restore(f manifest) error {
	c.keepSums(f.Files)
	from := c.fs.PathJoin(cmp.Or(c.source, c.dir), dirCheckpoints, checkpointName(f.Next))
	if err := c.fs.MkdirAll(c.path(dirLive), 0o700); err != nil {
		return err
	}
	var names []string
	var err error
	if f.Version != 0 {
		if names, err = c.fs.List(c.fs.PathJoin(from, dirPebble)); err != nil {
			return err
		}
	}
	for _, n := range names {
		src, dst := c.fs.PathJoin(from, dirPebble, n), c.path(dirLive, n)
		if strings.HasSuffix(n, ".sst") || strings.HasSuffix(n, ".blob") {
			err = c.fs.Link(src, dst)
		} else {
			err = vfs.Copy(c.fs, src, dst)
		}
		if err != nil {
			return err
		}
	}
	want := map[string][]string{dirKeys: f.Runs, dirSegments: f.Segments}
	for _, s := range f.Spool {
		want[dirSpool] = append(want[dirSpool], s.File)
	}
	for _, d := range []string{dirKeys, dirSegments, dirSpool} {
		have, err := c.fs.List(c.path(d))
		if err != nil {
			return err
		}
		// All of them: another node's checkpoint has files of the same names with
		// other content.
		for _, n := range have {
			if err := c.fs.Remove(c.path(d, n)); err != nil {
				return err
			}
		}
		for _, n := range want[d] {
			if err := c.fs.Link(c.fs.PathJoin(from, d, n), c.path(d, n)); err != nil {
				return err
			}
		}
		if err := statefiles.SyncDir(c.fs, c.path(d)); err != nil {
			return err
		}
	}
	return statefiles.SyncDir(c.fs, c.dir)
}
