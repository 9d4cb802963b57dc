package hashtable

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/musterhq/muster/internal/prefetch"
)

// Key is a uniformly distributed key.
type Key = [keySize]byte

const (
	keySize     = 16
	bucketSize  = 64
	bucketHead  = 4
	pageBuckets = 512
	firstPage   = 8 // buckets of the page that a table begins with
	maxDepth    = 30

	// maxValueSize leaves room for two entries in a bucket.
	maxValueSize = (bucketSize-bucketHead)/2 - keySize
)

// bucket is the bits of the entries in use (1 byte), a byte that is 0, how many
// entries passed it because it was full (2 bytes), and entries.
type bucket [bucketSize]byte

// fullPage is a page of the directory.
type fullPage [pageBuckets]bucket

// dirSlot is a page of a directory. A page of less depth than the directory has
// several slots, of which the first one counts.
type dirSlot struct {
	page  *fullPage
	n     int32
	depth int8 // bits that the page's keys have in common
}

// Table is a table. It is not safe for concurrent use, except for reads while it
// does not change. Make it with [New].
type Table struct {
	valueSize, entrySize, slots int

	n     int
	small []bucket  // the one page of a table without a directory
	dir   []dirSlot // by the first bits of a key
	shift uint      // 64 less their number

	scratch *fullPage // of split
}

// New returns an empty table of values of so many bytes, 14 at most.
func New(valueSize int) *Table {
	if valueSize < 0 || valueSize > maxValueSize {
		panic(fmt.Sprintf("hashtable: values of %d bytes, at most %d", valueSize, maxValueSize))
	}
	size := keySize + valueSize
	return &Table{
		valueSize: valueSize, entrySize: size, slots: (bucketSize - bucketHead) / size,
		small: make([]bucket, firstPage),
	}
}

// Len is the number of entries.
func (t *Table) Len() int { return t.n }

// Bytes is the memory the table takes.
func (t *Table) Bytes() int64 {
	n := int64(len(t.small))*bucketSize + int64(cap(t.dir))*16
	for i := range t.dir {
		if t.first(i) == i {
			n += pageBuckets * bucketSize
		}
	}
	if t.scratch != nil {
		n += pageBuckets * bucketSize
	}
	return n
}

// page finds the page of a key, and the first bucket of the key in it.
func (t *Table) page(k *Key) (p []bucket, home uint) {
	home = uint(binary.LittleEndian.Uint32(k[:]))
	if t.dir == nil {
		return t.small, home & uint(len(t.small)-1)
	}
	return t.dir[binary.LittleEndian.Uint64(k[8:])>>t.shift].page[:], home & (pageBuckets - 1)
}

// Get returns the value of a key, nil if there is none. The value may be written
// to; it is valid until the table is changed.
func (t *Table) Get(k *Key) []byte {
	p, i := t.page(k)
	lo, hi := binary.LittleEndian.Uint64(k[:]), binary.LittleEndian.Uint64(k[8:])
	for range p {
		b := &p[i&uint(len(p)-1)]
		if at := t.find(b, lo, hi); at > 0 {
			return b[at+keySize : at+t.entrySize]
		}
		if binary.LittleEndian.Uint16(b[2:]) == 0 {
			return nil
		}
		i++
	}
	return nil
}

// find returns where the key is in a bucket, 0 if it is not.
func (t *Table) find(b *bucket, lo, hi uint64) int {
	at := bucketHead
	for used := b[0]; used != 0; used >>= 1 {
		if binary.LittleEndian.Uint64(b[at&(bucketSize-1):]) == lo && used&1 == 1 && binary.LittleEndian.Uint64(b[at+8:]) == hi {
			return at
		}
		at += t.entrySize
	}
	return 0
}

// PrefetchPage brings near what Prefetch of a key reads: where the key's page is.
func (t *Table) PrefetchPage(k *Key) {
	if t.dir != nil {
		prefetch.Line(&t.dir[t.slot(k)])
	}
}

// Prefetch brings the line of a key near the processor. Called for many keys before
// any is looked up, it lets the processor wait for all of them at once.
func (t *Table) Prefetch(k *Key) {
	p, i := t.page(k)
	prefetch.Line(&p[i])
}

// Order is a number by which keys that lie near each other are near each other:
// many keys are put soonest in that order.
func Order(k *Key) uint64 { return binary.LittleEndian.Uint64(k[8:]) }

// Put returns the value of a key to be written to, until the table is changed.
// A key that is new gets a value of zeroes.
func (t *Table) Put(k *Key) []byte {
	if v := t.Get(k); v != nil {
		return v
	}
	return t.Add(k)
}

// Add is Put of a key that is not there. Of one that is, the table would have two.
func (t *Table) Add(k *Key) []byte {
	t.grow(k)
	t.n++
	if t.dir != nil {
		t.dir[t.first(t.slot(k))].n++
	}
	p, i := t.page(k)
	return t.insert(p, i, k[:])
}

// insert puts a key that is not there into a page that has room for it.
func (t *Table) insert(p []bucket, i uint, entry []byte) []byte {
	for {
		b := &p[i&uint(len(p)-1)]
		if free := bits.TrailingZeros8(^b[0]); free < t.slots {
			b[0] |= 1 << free
			e := b[bucketHead+free*t.entrySize:][:t.entrySize]
			clear(e[copy(e, entry):])
			return e[keySize:]
		}
		binary.LittleEndian.PutUint16(b[2:], binary.LittleEndian.Uint16(b[2:])+1)
		i++
	}
}

// Delete removes a key and reports whether it was there.
func (t *Table) Delete(k *Key) bool {
	p, home := t.page(k)
	lo, hi := binary.LittleEndian.Uint64(k[:]), binary.LittleEndian.Uint64(k[8:])
	for i := home; i < home+uint(len(p)); i++ {
		b := &p[i&uint(len(p)-1)]
		if at := t.find(b, lo, hi); at > 0 {
			b[0] &^= 1 << ((at - bucketHead) / t.entrySize)
			for ; home < i; home++ {
				passed := p[home&uint(len(p)-1)][2:]
				binary.LittleEndian.PutUint16(passed, binary.LittleEndian.Uint16(passed)-1)
			}
			t.n--
			if t.dir != nil {
				t.dir[t.first(t.slot(k))].n--
			}
			return true
		}
		if binary.LittleEndian.Uint16(b[2:]) == 0 {
			return false
		}
	}
	return false
}

// All calls fn for every entry until it returns false. The order means nothing;
// it is the same for the same table only. The table must not be changed.
func (t *Table) All(fn func(k *Key, value []byte) bool) {
	if t.dir == nil {
		t.each(t.small, fn)
		return
	}
	for i := range t.dir {
		if t.first(i) == i && !t.each(t.dir[i].page[:], fn) {
			return
		}
	}
}

func (t *Table) each(p []bucket, fn func(k *Key, value []byte) bool) bool {
	for i := range p {
		b := &p[i]
		at := bucketHead
		for used := b[0]; used != 0; used >>= 1 {
			if used&1 == 1 && !fn((*Key)(b[at:]), b[at+keySize:at+t.entrySize]) {
				return false
			}
			at += t.entrySize
		}
	}
	return true
}

func (t *Table) slot(k *Key) int { return int(binary.LittleEndian.Uint64(k[8:]) >> t.shift) }

// depth is how many bits of a key the directory goes by.
func (t *Table) depth() int { return 64 - int(t.shift) }

// first is the first slot of the page in a slot.
func (t *Table) first(slot int) int {
	return slot &^ (1<<(t.depth()-int(t.dir[slot].depth)) - 1)
}
