package file

// blockBytes is the size of a block; a larger record gets a block of its own.
const blockBytes = 256 << 10

// block is a piece of the memory with a partition's newest records, in frames, none
// of which straddles two blocks. Bytes below durable never change again until the block is recycled,
// so readers go through them without a lock. All fields belong to
// partition.mu, except that the bytes of the batch being written belong to the
// writer.
type block struct {
	buf []byte
	// n is how much of buf is used, durable how much of that is durable.
	n, durable int
	// first is the offset of the first record in the block.
	first int64
	// refs counts the chain and the readers that are in the block.
	refs int
	next *block
}

// chain is the list of blocks from the oldest kept to the one being filled.
// Guarded by partition.mu.
type chain struct {
	head, tail *block
	// from is the oldest offset that may be read from the chain: what is before
	// may have been redacted on disk.
	from int64
	// bytes is the size of all blocks in the chain.
	bytes int64
	// free are blocks to use again, at most maxFree.
	free    []*block
	maxFree int
}

// grow appends a block with room for size bytes.
func (c *chain) grow(size int, first int64) *block {
	var b *block
	if n := len(c.free); n > 0 && size <= blockBytes {
		b = c.free[n-1]
		c.free[n-1] = nil
		c.free = c.free[:n-1]
	} else {
		b = &block{buf: make([]byte, max(size, blockBytes))}
	}
	b.first = first
	b.refs = 1
	if c.tail == nil {
		c.head = b
	} else {
		c.tail.next = b
	}
	c.tail = b
	c.bytes += int64(len(b.buf))
	return b
}

// evict drops durable blocks from the old end while more than keep bytes of
// durable blocks are held. The block being filled stays.
func (c *chain) evict(keep int64) {
	// Blocks are durable from the head on, so what is durable is a prefix.
	held := int64(0)
	for b := c.head; b != nil && b.durable == b.n; b = b.next {
		held += int64(len(b.buf))
	}
	for held > keep && c.head != c.tail && c.head.durable == c.head.n {
		b := c.head
		c.head = b.next
		b.next = nil
		held -= int64(len(b.buf))
		c.bytes -= int64(len(b.buf))
		c.release(b)
	}
}

// release gives up one reference.
func (c *chain) release(b *block) {
	b.refs--
	if b.refs > 0 || len(b.buf) != blockBytes || len(c.free) >= c.maxFree {
		return
	}
	b.n, b.durable, b.next = 0, 0, nil
	c.free = append(c.free, b)
}

// find returns the block that holds the durable record at offset, or nil when
// it is older than the chain.
func (c *chain) find(offset int64) *block {
	b := c.head
	if b == nil || b.durable == 0 || offset < b.first || offset < c.from {
		return nil
	}
	for b.next != nil && b.next.durable > 0 && b.next.first <= offset {
		b = b.next
	}
	return b
}
