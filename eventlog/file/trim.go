package file

import (
	"fmt"

	"github.com/musterhq/muster/eventlog"
)

// Trim implements [eventlog.Log]. The new start of the log is durable before a file goes,
// in the file start and then, if there is space, in the file end. Files that could not be
// removed are tried again by the next Trim or the next start.
func (l *Log) Trim(partition int, before int64) error {
	p, err := l.partition(partition)
	if err != nil {
		return err
	}
	p.trimMu.Lock()
	defer p.trimMu.Unlock()

	// Only Trim removes from the front, so drop stays right without mu.
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return eventlog.ErrClosed
	}
	segs := p.mu.segments
	drop := 0
	for drop < len(segs)-1 && segs[drop+1].header.first <= before {
		drop++
	}
	start := segs[drop].header.first
	p.mu.Unlock()

	fsys := l.opts.FS
	for _, seg := range segs[:drop] {
		if err := p.keepSidecars(seg); err != nil {
			return fmt.Errorf("trim partition %d: keep what was redacted for a copy: %w", p.id, err)
		}
	}
	if drop > 0 {
		s := small{magic: startMagic, number: uint32(p.id), value: uint64(start)}
		if err := writeSmall(fsys, p.dir, startName, s); err != nil {
			return fmt.Errorf("trim partition %d: %w", p.id, err)
		}
	}
	p.mu.Lock()
	for _, seg := range p.mu.segments[:drop] {
		p.mu.garbage = append(p.mu.garbage, seg.path, seg.sidecarPath(redactingSuffix), seg.sidecarPath(redactedSuffix), seg.sidecarPath(redactedSuffix)+tmpSuffix)
	}
	p.mu.segments = append([]*segment(nil), p.mu.segments[drop:]...)
	p.mu.start = start
	garbage := p.mu.garbage
	p.mu.garbage = nil
	p.mu.Unlock()
	if drop > 0 {
		l.noteEndsQuietly(false)
	}

	l.noticed.whole(garbage...)
	for i, path := range garbage {
		if err := fsys.Remove(path); err != nil && !isNotExist(err) {
			p.mu.Lock()
			p.mu.garbage = append(p.mu.garbage, garbage[i:]...)
			p.mu.Unlock()
			return fmt.Errorf("trim partition %d: remove %s: %w", p.id, path, err)
		}
	}
	if len(garbage) == 0 {
		return nil
	}
	return syncDir(fsys, p.dir)
}
