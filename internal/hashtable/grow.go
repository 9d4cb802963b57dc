package hashtable

// most is how many entries n buckets take.
func (t *Table) most(buckets int) int { return buckets * t.slots * 4 / 5 }

// grow makes room for one more entry where the key belongs.
func (t *Table) grow(k *Key) {
	for {
		switch {
		case t.dir == nil && t.n < t.most(len(t.small)):
			return
		case t.dir == nil && len(t.small) < pageBuckets:
			old := t.small
			t.small = make([]bucket, 2*len(old))
			t.move(old)
		case t.dir == nil:
			t.dir = []dirSlot{{page: (*fullPage)(t.small), n: int32(t.n)}}
			t.small, t.shift, t.scratch = nil, 64, new(fullPage)
		default:
			i := t.first(t.slot(k))
			if int(t.dir[i].n) < t.most(pageBuckets) {
				return
			}
			t.split(i)
		}
	}
}

// move inserts all entries of buckets that are part of the table no more.
func (t *Table) move(from []bucket) {
	for i := range from {
		b := &from[i]
		at := bucketHead
		for used := b[0]; used != 0; used >>= 1 {
			if used&1 == 1 {
				e := b[at : at+t.entrySize]
				p, home := t.page((*Key)(e))
				t.insert(p, home, e)
			}
			at += t.entrySize
		}
	}
}

// split divides the page whose first slot it is given by one more bit.
func (t *Table) split(i int) {
	s := t.dir[i]
	if int(s.depth) == t.depth() {
		t.double()
		i *= 2
	}
	slots := 1 << (t.depth() - int(s.depth))
	*t.scratch = *s.page
	clear(s.page[:])
	// The second half has the bit set.
	half, other := i+slots/2, new(fullPage)
	other.touch()
	for k := i; k < i+slots; k++ {
		t.dir[k] = dirSlot{page: s.page, depth: s.depth + 1}
		if k >= half {
			t.dir[k].page = other
		}
	}
	t.move(t.scratch[:])
	n := int32(0)
	for b := range other {
		n += int32(popCount[other[b][0]])
	}
	t.dir[half].n, t.dir[i].n = n, s.n-n
}

// touch writes to each page of memory that a new page of the table takes. (Go begins objects of
// that size at one.) An insertion reads a bucket before it writes to it, and memory that is read
// first is mapped twice by the kernel: as a page of zeroes for all, and then as one of its own,
// which also interrupts other processors.
func (p *fullPage) touch() {
	for b := 0; b < pageBuckets; b += leastMemoryPage / bucketSize {
		p[b][0] = 0
	}
}

// leastMemoryPage is the size of the smallest page of memory of processors, in bytes.
const leastMemoryPage = 4096

// popCount is the number of entries that the first byte of a bucket names.
var popCount = [8]uint8{0, 1, 1, 2, 1, 2, 2, 3}

// double gives the directory one more bit.
func (t *Table) double() {
	if t.depth() == maxDepth {
		// Uniform keys do not come here before there are 10^11 of them.
		panic("hashtable: keys are not uniformly distributed")
	}
	dir := make([]dirSlot, 2*len(t.dir))
	for i, s := range t.dir {
		dir[2*i], dir[2*i+1] = s, s
	}
	t.dir = dir
	t.shift--
}
