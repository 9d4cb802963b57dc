package file

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// noSpacePause is how long records are refused before space is looked for again.
const noSpacePause = 500 * time.Millisecond

// noSpace is the error of records that are refused without a try.
func (p *partition) noSpace() error {
	return fmt.Errorf("%w: the file system of %s is full; free space elsewhere on it", eventlog.ErrNoSpace, p.log.dir)
}

// remove removes a file for good.
func remove(fsys vfs.FS, path string) error {
	if err := fsys.Remove(path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return syncDir(fsys, fsys.PathDir(path))
}

// refuse ends the batch, of which nothing was written, and all behind it: their
// records have offsets that follow from it. The log is then as if none of them
// had come.
func (p *partition) refuse(b *batch, err error) {
	opts := &p.log.opts
	p.mu.Lock()
	first := !p.mu.noSpace
	p.mu.noSpace, p.mu.retry = true, opts.Now().Add(noSpacePause)
	p.mu.next = b.offset
	p.mu.chain.cut(b.first, b.start)
	b.next = p.mu.queueHead
	p.mu.queueHead, p.mu.queueTail = nil, nil
	p.mu.Unlock()
	if first {
		opts.Logger.Error("the file system of the log is full: records are refused until there is space again; reads continue. Free space elsewhere on it, remove nothing in the data directory",
			"dir", p.log.dir, "partition", p.id, "err", err)
	}
	for b != nil {
		next := b.next
		p.finish(b, err)
		b = next
	}
}

// spaceAgain notes that a batch was stored.
func (p *partition) spaceAgain() {
	p.mu.Lock()
	was := p.mu.noSpace
	p.mu.noSpace = false
	p.mu.Unlock()
	if was {
		p.log.opts.Logger.Info("there is space for the log again; records are stored", "dir", p.log.dir, "partition", p.id)
	}
}

// cut drops all bytes from byte n of block b on. None of them is durable.
func (c *chain) cut(b *block, n int) {
	for x := b.next; x != nil; {
		next := x.next
		x.next = nil
		c.bytes -= int64(len(x.buf))
		c.release(x)
		x = next
	}
	b.n, b.next = n, nil
	c.tail = b
}
