package checkpoint

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/sortedkeys"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Frozen is the state of a generation, handed to the checkpoint writer. None
// of it is changed any more.
type Frozen struct {
	Manifest
	// Records are the newest record ids, oldest first.
	Records []eventlog.RecordID

	// What Pebble is to have: changes of accounts, Numbers being the accounts' numbers by
	// the index that document keys have; documents and entities (nil removes one); entries
	// of the index of profiles.
	Accounts []FrozenAccount
	Numbers  []uint64
	Docs     map[state.DocKey][]byte
	Entities map[string][]byte
	Index    *sortedkeys.Changes
	// Scrub names what is to leave Pebble's files, too.
	Scrub []Scrubbed

	// Keys are the idempotency keys since the last checkpoint, KeyRuns the files that have
	// those before. Keys up to the log time DropKeys, in Unix milliseconds, are expired.
	Keys     dedup.Answers
	KeyRuns  []*dedup.Run
	DropKeys int64

	// Items are rows that history may not have stored.
	Items []*feed.Item

	// Engines have the values of the segment engines that changed since the last file of
	// Chain; with WholeSegments all of them, which begins another chain.
	Engines       []FrozenEngine
	Chain         []SegmentFile
	WholeSegments bool
}

// FrozenAccount is what changed in an account: the owners of identifiers, and pages
// of headers.
type FrozenAccount struct {
	Number     uint64
	Identities []profile.IdentifierChange
	Pages      []profile.ChangedPage
}

// size is how many keys a checkpoint writes to Pebble.
func (f *Frozen) size() int {
	n := len(f.Docs) + len(f.Entities) + f.Index.Len()
	for _, a := range f.Accounts {
		n += len(a.Identities) + len(a.Pages)
	}
	return n
}

// WriteGeneration writes what changed to Pebble, most of it in the order of keys:
// that takes half the time.
func WriteGeneration(db *pebble.DB, f *Frozen, pauses *Pauses, disk *state.Disk) error {
	w := NewBatchWriter(db, pauses, disk)
	var key []byte
	for _, a := range f.Accounts {
		for _, c := range a.Identities {
			key = state.IdentityKey(key[:0], a.Number, c.Hash)
			if c.Ordinal == profile.NoOrdinal {
				w.Set(key, nil)
				continue
			}
			w.Set(key, []byte{byte(c.Ordinal), byte(c.Ordinal >> 8), byte(c.Ordinal >> 16), byte(c.Ordinal >> 24)})
		}
		var buf []byte
		for _, p := range a.Pages {
			buf = p.Page.Append(buf[:0])
			w.Set(state.PageKey(key[:0], a.Number, p.Number), buf)
		}
	}
	for _, k := range sortedDocs(f.Docs, pauses) {
		w.Set(state.DocumentKey(key[:0], f.Numbers[k>>32], uint32(k)), f.Docs[k])
	}
	for _, k := range slices.Sorted(maps.Keys(f.Entities)) {
		w.Set([]byte(k), f.Entities[k])
	}
	return errors.Join(writeIndex(db, f.Index, w), w.Finish())
}

// sortedAtOnce is how many comparisons of a sort are one piece of work: some 100 µs.
const sortedAtOnce = 16384

// sortedDocs lists the keys of documents in order.
func sortedDocs(docs map[state.DocKey][]byte, pauses *Pauses) []state.DocKey {
	compared := 0
	return slices.SortedFunc(maps.Keys(docs), func(a, b state.DocKey) int {
		if compared++; compared%sortedAtOnce == 0 {
			pauses.worked()
		}
		return cmp.Compare(a, b)
	})
}

// writeIndex writes what changed of the index of profiles.
func writeIndex(db *pebble.DB, changes *sortedkeys.Changes, w *BatchWriter) error {
	// The keys come in order, and an iterator continues from where it is: a Get for each takes
	// four times as long.
	stored, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	for c := changes.From(nil, nil); c.Valid(); c.Next() {
		w.pauses.worked()
		if !c.Removed() {
			w.Set(c.Key(), []byte{})
			continue
		}
		// A deletion has the text, too, and stays where it finds nothing to remove.
		if stored.SeekGE(c.Key()) && bytes.Equal(stored.Key(), c.Key()) {
			w.Set(c.Key(), nil)
		}
		if stored.Error() != nil {
			break
		}
	}
	return stored.Close()
}

// BatchWriter commits sets (and deletes, for nil) in batches of bounded size.
type BatchWriter struct {
	db     *pebble.DB
	batch  *pebble.Batch
	pauses *Pauses
	disk   *state.Disk
	err    error
}

// NewBatchWriter writes to db, with pauses between batches. It fails when the disk has no space.
func NewBatchWriter(db *pebble.DB, pauses *Pauses, disk *state.Disk) *BatchWriter {
	return &BatchWriter{db: db, batch: db.NewBatch(), pauses: pauses, disk: disk}
}

// batchBytes bounds a batch: a millisecond's work.
const batchBytes = 64 << 10

// Set sets a key, or removes it for a nil value. After an error it does nothing.
func (w *BatchWriter) Set(key, value []byte) {
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
		w.pauses.worked()
	}
}

// Err is the first error, for callers that stop early.
func (w *BatchWriter) Err() error { return w.err }

func (w *BatchWriter) commit() {
	// Pebble would take a few more and then keep the writer waiting.
	if w.err = errors.Join(w.err, w.disk.StoreErr()); w.err != nil {
		w.err = errors.Join(w.err, w.batch.Close())
		return
	}
	w.err = errors.Join(w.err, w.batch.Commit(pebble.NoSync), w.batch.Close())
}

// Finish commits what is left, and returns the first error of all.
func (w *BatchWriter) Finish() error {
	if w.err != nil {
		return errors.Join(w.err, w.batch.Close())
	}
	w.commit()
	return w.err
}
