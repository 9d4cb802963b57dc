// Package state is the store of the state machine: documents and entities, what changed of
// them since the last checkpoint, and the keys under which they are on disk. It knows neither
// records nor rules.
package state

import (
	"errors"
	"fmt"
	"maps"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/prefetch"
	"github.com/musterhq/muster/internal/sortedkeys"
	"github.com/musterhq/muster/resolver/internal/fieldcolumns"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// Account is how the store names an account: by its number on disk, and by its index
// in memory.
type Account struct {
	Number uint64
	Index  uint32
}

// DocKey names a document within the process.
type DocKey uint64

// DocKey is the name of a document of the account.
func (a Account) DocKey(ordinal uint32) DocKey {
	return DocKey(uint64(a.Index)<<32 | uint64(ordinal))
}

// Store keeps documents and entities: what changed in the present generation
// in memory, everything older in Pebble, with a bounded cache. Blocks handed
// in and out are never changed in place.
//
// The layers of documents, newest first: current (this generation), frozen
// (being written by a checkpoint), retired (written by the last one), cache,
// Pebble. A nil block says the document is gone. What changes leaves the cache
// at once, so the cache is never older than Pebble.
type Store struct {
	DB   *pebble.DB
	disk *Disk // nil where there is always space
	// reserve takes bytes off the cache of blocks until done is called.
	reserve func(bytes int64) (done func())
	// memtableBytes are the memtables' part of that cache, blockBytes the rest of it.
	memtableBytes, blockBytes int64

	current      map[DocKey][]byte
	CurrentBytes int64
	// slab is where the generation's documents lie together, see keep.
	slab    []byte
	frozen  map[DocKey][]byte
	retired map[DocKey][]byte
	cache   docCache

	Entities       map[string][]byte // changed in this generation; nil removes
	FrozenEntities map[string][]byte // being written by a checkpoint

	// Columns keep some fields of documents apart: see fieldcolumns. They and the cache
	// share the cache's bytes.
	Columns *fieldcolumns.Tables

	// index is what changed of the index of profiles in this generation, frozenIndex
	// what a checkpoint is writing of it.
	index, FrozenIndex *sortedkeys.Changes

	// last is the document that was read or written last: one that is changed was read
	// just before, and is asked for again when it is saved. For the goroutine of Apply.
	last struct {
		known bool
		key   DocKey
		block []byte
	}
}

// Open opens the store in dir, on a disk that always has space.
func Open(fs vfs.FS, dir string, cacheBytes int64, log pebble.Logger) (*Store, error) {
	return OpenOn(nil, fs, dir, cacheBytes, log, nil)
}

// OpenOn is [Open] on a disk that may be full; nil is one that is not.
// damaged, unless it is nil, is called with every damage to the store's files that is
// found later, from any goroutine.
func OpenOn(d *Disk, fs vfs.FS, dir string, cacheBytes int64, log pebble.Logger, damaged func(error)) (*Store, error) {
	if d != nil {
		fs = storeFS{fs, d, dir}
		defer d.running.Store(true)
	}
	if log == nil {
		log = pebble.DefaultLogger
	}
	o := pebbleOptions(fs, log)
	report := func(err error) {
		d.noteDamage(err)
		if damaged != nil {
			damaged(err)
		}
	}
	o.EventListener = &pebble.EventListener{
		// Without this handler Pebble ends the process.
		DataCorruption: func(info pebble.DataCorruptionInfo) { report(statefiles.Damaged(info.Path, "%v", info.Details)) },
		// What fails in the background Pebble tries again for ever, also when its directory
		// is gone.
		BackgroundError: func(err error) {
			log.Errorf("background error: %s", err)
			if statefiles.IsNotExist(err) || statefiles.IsMisplaced(err) {
				report(statefiles.Damaged(dir, "%v", err))
			}
		},
	}
	// Pebble takes its memtables' bytes off the cache of blocks: two of them, the
	// present one and the one it uses again. With less than that nothing is cached,
	// and each read checks and decompresses filter, index and data again.
	o.Cache = pebble.NewCache(2*int64(o.MemTableSize) + cacheBytes/blocksShare)
	defer o.Cache.Unref()
	// Pebble waits for a compaction that it begins while it opens.
	opened := d.Urgent()
	db, err := pebble.Open(dir, o)
	opened()
	if err != nil {
		return nil, fmt.Errorf("open state in %s: %w", dir, err)
	}
	columns := fieldcolumns.New(cacheBytes / columnsShare)
	return &Store{
		DB:            db,
		disk:          d,
		reserve:       func(bytes int64) func() { return o.Cache.Reserve(int(bytes)) },
		memtableBytes: 2 * int64(o.MemTableSize), blockBytes: cacheBytes / blocksShare,
		Columns:  columns,
		current:  map[DocKey][]byte{},
		Entities: map[string][]byte{},
		index:    new(sortedkeys.Changes), FrozenIndex: new(sortedkeys.Changes),
		cache: docCache{limit: func() int64 { return (cacheBytes - columns.Bytes()) / 2 }, young: map[DocKey][]byte{}},
	}, nil
}

// Loading is called before a start reads most of the store once, and done after that: what it
// reads does not fill the memory that memtables will take, and is not kept.
func (s *Store) Loading() (done func()) {
	memtables := s.reserve(s.memtableBytes)
	return func() {
		all := s.reserve(s.blockBytes)
		memtables()
		all()
	}
}

// Close closes Pebble, which no longer waits for space.
func (s *Store) Close() error {
	if s.disk != nil {
		s.disk.Close()
	}
	return s.DB.Close()
}

func pebbleOptions(fs vfs.FS, log pebble.Logger) *pebble.Options {
	o := &pebble.Options{
		FS: fs,
		// The event log is the write-ahead log; a crash goes back to the
		// newest checkpoint.
		DisableWAL:                  true,
		MemTableSize:                32 << 20,
		MemTableStopWritesThreshold: 4,
		// Each checkpoint adds a table or two to the topmost level, and each compaction of
		// that level writes most of the next again: half as many save more than the reads
		// cost, which bloom filters keep away from tables.
		L0CompactionThreshold: 8,
		Logger:                log,
		FormatMajorVersion:    pebble.FormatNewest,
		// A new list of files is begun as often as that doubles what is written of it at
		// most: old ones name keys that are gone, see renewManifest.
		MaxManifestFileSize: 1,
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// Document reads a document for Apply, through the cache.
func (s *Store) Document(a Account, ordinal uint32) ([]byte, error) {
	k := a.DocKey(ordinal)
	if s.last.known && s.last.key == k {
		return s.last.block, nil
	}
	b, ok := s.Changed(k)
	if !ok {
		b, ok = s.cache.get(k)
	}
	if !ok {
		var err error
		if b, err = s.read(a, ordinal); err != nil {
			return nil, err
		}
		s.cache.put(k, b)
	}
	s.setLast(k, b)
	return b, nil
}

func (s *Store) setLast(k DocKey, b []byte) { s.last.known, s.last.key, s.last.block = true, k, b }

// prefetchBytes is how much of a document is brought near at most.
const prefetchBytes = 1024

// Prefetch brings a document that is in memory near the processor.
func (s *Store) Prefetch(a Account, ordinal uint32) {
	k := a.DocKey(ordinal)
	b, ok := s.Changed(k)
	if !ok {
		b = s.cache.young[k]
	}
	prefetch.Bytes(b, prefetchBytes)
}

// Peek reads a document for a view: it leaves the cache, which belongs to
// Apply, as it is.
func (s *Store) Peek(a Account, ordinal uint32) ([]byte, error) {
	if b, ok := s.Changed(a.DocKey(ordinal)); ok {
		return b, nil
	}
	return s.read(a, ordinal)
}

// Changed is a document that Pebble may not have yet.
func (s *Store) Changed(k DocKey) ([]byte, bool) {
	if b, ok := s.current[k]; ok {
		return b, true
	}
	if b, ok := s.frozen[k]; ok {
		return b, true
	}
	b, ok := s.retired[k]
	return b, ok
}

// read reads a document from Pebble. A removed one is not found there.
func (s *Store) read(a Account, ordinal uint32) ([]byte, error) {
	var buf [64]byte
	v, closer, err := s.DB.Get(DocumentKey(buf[:0], a.Number, ordinal))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, fmt.Errorf("profile %d of account %016x has no document", ordinal, a.Number)
	}
	if err != nil {
		return nil, fmt.Errorf("read profile %d: %w", ordinal, err)
	}
	return append([]byte(nil), v...), closer.Close()
}

// columnsShare is the part of the cache's bytes that columns of fields may take, and
// blocksShare that of Pebble's blocks.
const (
	columnsShare = 4
	blocksShare  = 8
)

// docOverhead is roughly what a map entry and its block cost beside the bytes.
const docOverhead = 64

// PutDocument stores a copy of a document and returns it; nil says that it is gone. Only
// package resolution calls it: indexes and segments have to follow.
func (s *Store) PutDocument(a Account, ordinal uint32, document []byte) []byte {
	k := a.DocKey(ordinal)
	old, again := s.current[k]
	if !again {
		s.CurrentBytes += docOverhead
		s.cache.forget(k) // what is in current is not in the cache
	}
	b := s.keep(document, again)
	s.CurrentBytes += int64(len(b))
	if alone(old) {
		s.CurrentBytes -= int64(len(old))
	}
	s.current[k] = b
	s.setLast(k, b)
	s.Columns.Mark(a.Index, ordinal)
	return b
}

// slabBytes is how much of a generation's documents is one object for the garbage collector,
// and slabDocument how large a document in one is at most.
const (
	slabBytes    = 256 << 10
	slabDocument = slabBytes / 16
)

// keep copies a document to the others of the generation. They are dropped together, so the
// garbage collector need not look at each: its work grows with the number of objects. A
// document that is changed again in its generation is an object of its own: in a slab its older
// versions would stay as long as the generation does, as the first one does.
func (s *Store) keep(document []byte, again bool) []byte {
	switch {
	case document == nil:
		return nil
	case again || len(document) > slabDocument:
		return append(make([]byte, 0, len(document)+1), document...) // see alone
	case cap(s.slab)-len(s.slab) < len(document):
		s.slab = make([]byte, 0, slabBytes)
	}
	from := len(s.slab)
	s.slab = append(s.slab, document...)
	return s.slab[from:len(s.slab):len(s.slab)]
}

// alone tells a document that is an object of its own, which has room for a byte more, from one
// in a slab.
func alone(document []byte) bool { return cap(document) > len(document) }

// PutEntity stores an entity; nil removes it.
func (s *Store) PutEntity(key string, b []byte) { s.Entities[key] = b }

// PutPayload is [Store.PutEntity] for what may be large: it counts against the bound of
// a generation.
func (s *Store) PutPayload(key string, b []byte) {
	s.CurrentBytes += int64(len(b)) + docOverhead
	s.Entities[key] = b
}

// Entity reads an entity that is kept in the store alone, nil if there is none.
func (s *Store) Entity(key string) ([]byte, error) {
	if b, ok := s.Entities[key]; ok {
		return b, nil
	}
	if b, ok := s.FrozenEntities[key]; ok {
		return b, nil
	}
	v, closer, err := s.DB.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read entity %x: %w", key, err)
	}
	return append([]byte{}, v...), closer.Close()
}

// Freeze hands over the generation and starts a new one. The frozen documents
// stay readable until thaw.
func (s *Store) Freeze() (docs map[DocKey][]byte, entities map[string][]byte) {
	docs, entities = s.current, s.Entities
	s.frozen, s.FrozenEntities = docs, entities
	s.current, s.CurrentBytes, s.slab = map[DocKey][]byte{}, 0, nil
	s.Entities = map[string][]byte{}
	s.index, s.FrozenIndex = new(sortedkeys.Changes), s.index
	return docs, entities
}

// Thaw ends the checkpoint: Pebble has the frozen generation now. Its documents
// are the ones most likely needed again, so they stay until the next one.
func (s *Store) Thaw() {
	s.retired, s.frozen, s.FrozenEntities, s.FrozenIndex = s.frozen, nil, nil, new(sortedkeys.Changes)
}

// Overlay returns the documents that are newer than Pebble's, for a snapshot.
func (s *Store) Overlay() map[DocKey][]byte {
	if len(s.frozen) == 0 {
		return maps.Clone(s.current)
	}
	out := make(map[DocKey][]byte, len(s.frozen)+len(s.current))
	maps.Copy(out, s.frozen)
	maps.Copy(out, s.current)
	return out
}

// docCache holds documents read from Pebble in two halves: what is found in
// the old half moves to the young one; when that is full it becomes the old.
type docCache struct {
	limit  func() int64 // bytes of a half
	young  map[DocKey][]byte
	old    map[DocKey][]byte
	bytes  int64 // of young
	hits   uint64
	misses uint64
}

func (c *docCache) get(k DocKey) ([]byte, bool) {
	if b, ok := c.young[k]; ok {
		c.hits++
		return b, true
	}
	if b, ok := c.old[k]; ok {
		c.hits++
		c.put(k, b)
		return b, true
	}
	c.misses++
	return nil, false
}

func (c *docCache) put(k DocKey, b []byte) {
	c.young[k] = b
	if c.bytes += int64(len(b)) + docOverhead; c.bytes > c.limit() {
		c.old, c.young, c.bytes = c.young, map[DocKey][]byte{}, 0
	}
}

func (c *docCache) forget(k DocKey) {
	delete(c.young, k)
	delete(c.old, k)
}
