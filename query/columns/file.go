package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/internal/wire"
)

// ErrDamaged means that a file is not as it was written.
var ErrDamaged = errors.New("a file of columns is damaged")

// file is a file that is open for reading.
type file struct {
	header
	path     string
	f        *os.File
	bytes    int64
	accounts []accountEntry // in order
	// users are those who read, and the set; the last closes the file.
	users atomic.Int32

	mu     sync.Mutex
	groups map[groupKey]*fileGroup // that were read, maxGroups at most
}

type groupKey struct {
	account   uint64
	eventType string
}

// maxGroups is how many groups a file remembers.
const maxGroups = 256

type accountEntry struct {
	number    uint64
	directory section
}

// openFile opens a file and reads what it says of itself.
func openFile(path string) (*file, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	x := &file{path: path, f: f}
	x.users.Store(1)
	if err := x.readIndex(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

func (x *file) readIndex() error {
	info, err := x.f.Stat()
	if err != nil {
		return err
	}
	x.bytes = info.Size()
	if x.bytes < int64(len(magic)+footerSize) {
		return x.damaged("too short")
	}
	var footer [footerSize]byte
	if _, err := x.f.ReadAt(footer[:], x.bytes-footerSize); err != nil {
		return err
	}
	if string(footer[16:]) != magic {
		return x.damaged("no end")
	}
	index, err := x.read(section{binary.LittleEndian.Uint64(footer[:]), binary.LittleEndian.Uint32(footer[8:]), binary.LittleEndian.Uint32(footer[12:])}, nil)
	if err != nil {
		return err
	}
	r := wire.Reader{B: index}
	x.log = string(r.Block())
	x.partition, x.from, x.to = int(r.U32()), int64(r.U64()), int64(r.U64())
	x.rows = int(r.Uvarint())
	x.accounts = make([]accountEntry, r.Count(24))
	for i := range x.accounts {
		x.accounts[i] = accountEntry{r.U64(), readSection(&r)}
	}
	if r.Bad || len(r.B) > 0 || x.from >= x.to {
		return x.damaged("index")
	}
	return nil
}

func (x *file) damaged(what string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, x.path, what) }

// read reads a section, into memory of work if there is some, and compares its sum.
func (x *file) read(s section, work *scratch) ([]byte, error) {
	if s.at > uint64(x.bytes) || uint64(s.size) > uint64(x.bytes)-s.at {
		return nil, x.damaged("a section beyond its end")
	}
	b := work.bytes(int(s.size))
	if _, err := x.f.ReadAt(b, int64(s.at)); err != nil {
		return nil, err
	}
	if crc32.Checksum(b, castagnoli) != s.sum {
		return nil, x.damaged("the sum of a section")
	}
	return b, nil
}

// use counts a reader in. It must not be called after the set let go of the file.
func (x *file) use() { x.users.Add(1) }

// done counts a reader out.
func (x *file) done() {
	if x.users.Add(-1) == 0 {
		_ = x.f.Close() // it was only read
	}
}

// has reports whether the file has events of an account.
func (x *file) has(account uint64) bool { _, ok := x.entry(account); return ok }

func (x *file) entry(account uint64) (accountEntry, bool) {
	i, ok := slices.BinarySearchFunc(x.accounts, account, func(e accountEntry, n uint64) int {
		switch {
		case e.number < n:
			return -1
		case e.number > n:
			return 1
		}
		return 0
	})
	if !ok {
		return accountEntry{}, false
	}
	return x.accounts[i], true
}

// fileGroup is what a directory says of a group.
type fileGroup struct {
	rows         int
	minMs, maxMs int64
	ordinals     section
	times        section
	timeWidth    int
	state        byte
	columns      []fileColumn
}

type fileColumn struct {
	key     string
	dropped bool
	values  int
	texts   section
	width   int
	numbers section
}

// group is an account's group of a type, nil if there is none.
func (x *file) group(account uint64, eventType string) (*fileGroup, error) {
	e, ok := x.entry(account)
	if !ok {
		return nil, nil
	}
	key := groupKey{account, eventType}
	x.mu.Lock()
	defer x.mu.Unlock()
	if g, ok := x.groups[key]; ok {
		return g, nil
	}
	g, err := x.readGroup(e, eventType)
	if err != nil {
		return nil, err
	}
	if x.groups == nil || len(x.groups) >= maxGroups {
		x.groups = map[groupKey]*fileGroup{}
	}
	x.groups[key] = g
	return g, nil
}

func (x *file) readGroup(e accountEntry, eventType string) (found *fileGroup, err error) {
	err = x.eachGroup(e, func(name []byte, g *fileGroup) (more bool, err error) {
		if string(name) != eventType {
			return true, nil
		}
		found = g
		return false, nil
	})
	return found, err
}

// eachGroup calls fn for the groups of an account, in order, until it wants no more.
func (x *file) eachGroup(e accountEntry, fn func(eventType []byte, g *fileGroup) (more bool, err error)) error {
	b, err := x.read(e.directory, nil)
	if err != nil {
		return err
	}
	r := wire.Reader{B: b}
	for n := r.Count(1); n > 0; n-- {
		eventType, g := nextGroup(&r)
		if r.Bad {
			break
		}
		if more, err := fn(eventType, g); !more || err != nil {
			return err
		}
	}
	if r.Bad || len(r.B) > 0 {
		return x.damaged("directory")
	}
	return nil
}

// nextGroup reads what a directory says of its next group.
func nextGroup(r *wire.Reader) (eventType []byte, g *fileGroup) {
	eventType = r.Block()
	g = &fileGroup{rows: int(r.Uvarint()), minMs: int64(r.U64()), maxMs: int64(r.U64()), ordinals: readSection(r)}
	g.timeWidth = int(r.U8())
	g.times = readSection(r)
	g.state = r.U8()
	for c := r.Count(2); c > 0; c-- {
		column := fileColumn{key: string(r.Block()), dropped: r.U8() == columnDropped}
		if !column.dropped {
			column.values, column.texts = int(r.Uvarint()), readSection(r)
			r.Bad = r.Bad || uint64(column.values) > math.MaxUint32
			column.width = int(r.U8())
			column.numbers = readSection(r)
		}
		g.columns = append(g.columns, column)
	}
	r.Bad = r.Bad || uint64(g.rows) > math.MaxUint32
	return eventType, g
}

// column finds the column of a key. kept reports whether what the key has is known: a
// key that no event has is, with nil.
func (g *fileGroup) column(key string) (c *fileColumn, kept bool) {
	if g.state == groupUnreadable {
		return nil, false
	}
	for i := range g.columns {
		if g.columns[i].key == key {
			return &g.columns[i], !g.columns[i].dropped
		}
	}
	return nil, g.state == groupWhole
}

// view reads the columns that are asked for; kept is false where one of them is not
// there. It is valid until work is used for another.
func (x *file) view(g *fileGroup, keys []string, work *scratch) (v *view, kept bool, err error) {
	work.begin()
	v = &view{rows: g.rows, columns: make([]viewColumn, len(keys))}
	found := make([]*fileColumn, len(keys))
	for i, key := range keys {
		if found[i], kept = g.column(key); !kept {
			return nil, false, nil
		}
	}
	if v.ordinal, v.times, err = x.events(g, work); err != nil {
		return nil, false, err
	}
	for i, c := range found {
		if c == nil {
			continue
		}
		if v.columns[i], err = x.column(c, g.rows, work); err != nil {
			return nil, false, err
		}
	}
	return v, true, nil
}

// events reads the ordinals and times of a group.
func (x *file) events(g *fileGroup, work *scratch) (o ordinals, t times, err error) {
	if o.raw, err = x.sized(g.ordinals, 4*g.rows, work); err != nil {
		return o, t, err
	}
	t.base, t.width = g.minMs, g.timeWidth
	if g.timeWidth != 4 && g.timeWidth != 8 {
		return o, t, x.damaged("width of times")
	}
	t.raw, err = x.sized(g.times, g.timeWidth*g.rows, work)
	return o, t, err
}

// column reads a column.
func (x *file) column(c *fileColumn, rows int, work *scratch) (v viewColumn, err error) {
	if c.width != 1 && c.width != 2 && c.width != 4 {
		return v, x.damaged("width of numbers")
	}
	v.numbers.width = c.width
	if v.numbers.raw, err = x.sized(c.numbers, c.width*rows, work); err != nil {
		return v, err
	}
	b, err := x.read(c.texts, work)
	if err != nil {
		return v, err
	}
	r := wire.Reader{B: b}
	if c.values > len(b) {
		return v, x.damaged("number of values")
	}
	v.texts.ends, v.texts.data = make([]uint32, 0, c.values), work.bytes(len(b))[:0]
	for range c.values {
		v.texts.data = append(v.texts.data, r.Block()...)
		v.texts.ends = append(v.texts.ends, uint32(len(v.texts.data)))
	}
	if r.Bad || len(r.B) > 0 {
		return v, x.damaged("values")
	}
	return v, nil
}

// sized reads a section that must have that size.
func (x *file) sized(s section, size int, work *scratch) ([]byte, error) {
	if int(s.size) != size {
		return nil, x.damaged("the size of a section")
	}
	return x.read(s, work)
}
