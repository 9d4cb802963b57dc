package file

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// Scrub reads the segments that are closed, one after the other, and compares their
// checksums. throttle is asked before each read of so many bytes and may wait; its error ends
// it. found is called for each damaged file, with a [*eventlog.CorruptError]. Nothing
// waits for it: what is trimmed or redacted meanwhile is no damage.
func (l *Log) Scrub(ctx context.Context, throttle func(ctx context.Context, bytes int) error, found func(error)) error {
	c := checker{fs: throttledFS{l.opts.FS, func(bytes int) error { return throttle(ctx, bytes) }}, dir: l.dir}
	for _, p := range l.partitions {
		prev := int64(-1)
		segs := p.kept()
		for i, seg := range segs[:len(segs)-1] {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !p.keeps(seg) {
				prev = -1
				continue
			}
			_, _, err := c.segment(p, seg.header.first, prev, nil, segs[i+1].header.first)
			prev = seg.header.first
			switch {
			case err == nil:
				l.noticed.whole(seg.path, seg.sidecarPath(redactedSuffix))
			case ctx.Err() != nil:
				return ctx.Err()
			case !p.keeps(seg):
				prev = -1
			case isNotExist(err): // see Missing
				prev = -1
			case isCorrupt(err):
				found(l.noticed.notice(err))
			default:
				return err
			}
		}
	}
	return nil
}

// Missing lists what is not there any more of the files of the log, by a
// [*eventlog.CorruptError] each. They are only looked up.
func (l *Log) Missing() (out []error, err error) {
	small := []string{l.opts.FS.PathJoin(l.dir, metaName)}
	l.endsMu.Lock()
	noted := l.flags&metaEnds != 0
	l.endsMu.Unlock()
	for _, p := range l.partitions {
		if noted {
			small = append(small, p.endPath())
		}
		if start, _ := p.bounds(); start > 0 {
			small = append(small, l.opts.FS.PathJoin(p.dir, startName))
		}
	}
	for _, path := range small {
		if there, err := l.there(path); err != nil {
			return out, err
		} else if !there {
			out = append(out, withSmallRemedy(&eventlog.CorruptError{File: path, Reason: "the file was removed while the log is in use"}))
		}
	}
	for _, p := range l.partitions {
		for _, seg := range p.kept() {
			if there, err := l.there(seg.path); err != nil {
				return out, err
			} else if !there && p.keeps(seg) {
				out = append(out, missing(seg))
			}
		}
	}
	return out, nil
}

// there reports whether there is a file of that path.
func (l *Log) there(path string) (bool, error) {
	_, err := l.opts.FS.Stat(path)
	if isNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

func missing(seg *segment) error {
	return &eventlog.CorruptError{File: seg.path, Offset: seg.header.first, Reason: "the segment file was removed while the log is in use"}
}

// kept are the segments there are now.
func (p *partition) kept() []*segment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*segment(nil), p.mu.segments...)
}

// keeps reports whether a segment was not trimmed.
func (p *partition) keeps(seg *segment) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mu.segments) > 0 && p.mu.segments[0].header.first <= seg.header.first
}

// throttledFS asks before it reads from a file.
type throttledFS struct {
	vfs.FS
	throttle func(bytes int) error
}

func (fs throttledFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return throttledFile{f, fs.throttle}, nil
}

type throttledFile struct {
	vfs.File
	throttle func(bytes int) error
}

func (f throttledFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.throttle(len(b)); err != nil {
		return 0, fmt.Errorf("wait to read: %w", err)
	}
	return f.File.ReadAt(b, at)
}
