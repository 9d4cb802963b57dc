package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/dirlock"
)

// leftLog is what is left of the log that was backed up. No server has it until it is
// closed.
type leftLog struct {
	file.Checked
	held io.Closer // the lock, nil where the log has none
}

func (l *leftLog) close() {
	if l.held != nil {
		_ = l.held.Close()
	}
}

// openLeftLog reads o.Log, which must be the log of the backup m. Of the backup it
// fetches nothing but the log's identity: it may have terabytes.
func (o *Options) openLeftLog(ctx context.Context, set *blobtree.Set, m *blobtree.Manifest) (_ *leftLog, err error) {
	left := &leftLog{}
	lock := o.FS.PathJoin(o.Log, fileLock)
	if _, err := o.FS.Stat(lock); err == nil {
		if left.held, err = dirlock.Lock(o.FS, lock); err != nil {
			return nil, fmt.Errorf("--log: %w; stop it first", err)
		}
	}
	defer func() {
		if err != nil {
			left.close()
		}
	}()
	switch left.Checked, err = o.readLog(o.Log); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--log: %w", err)
	case err != nil:
		return nil, fmt.Errorf("--log: %s: %w", o.Log, err)
	}
	meta := *m
	meta.Files = nil
	for _, f := range m.Files {
		if f.Path == "log/meta" {
			meta.Files = append(meta.Files, f)
		}
	}
	if len(meta.Files) == 0 {
		return nil, errors.New("the backup has no log/meta: restore another one, see --list")
	}
	if err := set.Fetch(ctx, &meta, o.Dir); err != nil {
		return nil, fmt.Errorf("the backup's log/meta: %w%s", err, remedy(err))
	}
	var a about
	if err := json.Unmarshal(m.Meta, &a); err != nil {
		return nil, fmt.Errorf("the backup: %w", err)
	}
	was, err := file.Check(o.FS, o.FS.PathJoin(o.Dir, "log"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the backup's log/meta: %w", err)
	case left.ID != was.ID:
		return nil, fmt.Errorf("--log: %s is log %016x, the backup is of log %016x. Name what is left of the log that was backed up, or restore without --log", o.Log, left.ID, was.ID)
	case len(left.Ends) != len(was.Ends):
		return nil, fmt.Errorf("--log: %s has %d partitions, the backup has %d; it is not the log that was backed up", o.Log, len(left.Ends), len(was.Ends))
	case len(a.Ends) == len(left.Starts):
		return left, o.reaches(a.Ends, left.Starts)
	}
	return left, nil
}

// reaches refuses a left log that begins behind the end of the backup, by partition: what is
// between was trimmed.
func (o *Options) reaches(ends, starts []int64) error {
	for i, start := range starts {
		if end := ends[i]; start > end {
			return fmt.Errorf("--log: %s was trimmed below record %d, and the backup ends below record %d, so the records %d to %d are in neither. Only a backup that reaches record %d continues: restore a newer one, see --list, or restore this one without --log", o.FS.PathJoin(o.Log, fmt.Sprintf("p%d", i)), start, end, end, start-1, start)
		}
	}
	return nil
}

// continueLog makes the restored log that of the backup with the records behind it
// that are left in o.Log, and returns it and how many those are. A file that both have is
// taken from where it is whole. The left log is not changed.
func (o *Options) continueLog(left file.Checked) (after file.Checked, records int64, err error) {
	to := o.FS.PathJoin(o.Dir, "log")
	before, err := o.wholeLog(to, "the log of the backup is not whole: restore another one, see --list")
	if err != nil {
		return after, 0, err
	}
	if err := o.reaches(before.Ends, left.Starts); err != nil {
		return after, 0, err
	}
	damaged := map[string]bool{}
	for _, f := range left.Findings {
		damaged[f.Path] = f.Err != nil
	}
	for i := range left.Ends {
		// The state of the backup follows from its records, and not from others in their
		// places, as after a restored directory was served, and backed up to the same place.
		err := file.Compare(o.FS, to, o.Log, i, damaged)
		var forked *file.ForkedError
		if errors.As(err, &forked) {
			return after, 0, fmt.Errorf("--log: the backup is not of this log, but of one that went apart from it: %w than the backup. Restore another backup, see --list, or restore without --log", err)
		}
		if err != nil {
			return after, 0, fmt.Errorf("--log: %w", err)
		}
	}
	for i := range left.Ends {
		if err := o.continuePartition(fmt.Sprintf("p%d", i), damaged, before.Growing); err != nil {
			return after, 0, fmt.Errorf("--log: %w", err)
		}
	}
	// The restored log says how far the left one went, so that what it lacks is noticed. It
	// begins where that of the backup does, however the left one was trimmed since.
	for i := range left.Ends {
		noted, err := file.NotedEnd(o.FS, o.Log, left.ID, i)
		if err == nil && noted > before.Ends[i] {
			err = file.NoteEnd(o.FS, to, left.ID, i, noted)
		}
		if err != nil {
			return after, 0, fmt.Errorf("--log: %w", err)
		}
	}
	after, err = o.wholeLog(to, fmt.Sprintf("what is left in %s does not continue the backup. Without --log what the backup has is restored", o.Log))
	if err != nil {
		return after, 0, err
	}
	for i, end := range after.Ends {
		if end < before.Ends[i] {
			return after, 0, fmt.Errorf("--log: %s ends at record %d, before the backup at %d: restore without it", o.Log, end, before.Ends[i])
		}
		records += end - before.Ends[i]
	}
	return after, records, nil
}

// wholeLog checks a log, which must be whole.
func (o *Options) wholeLog(dir, otherwise string) (file.Checked, error) {
	c, err := o.readLog(dir)
	if err == nil {
		err = damage(c)
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", otherwise, err)
	}
	return c, nil
}

// continuePartition brings the files of a partition of the left log. growing are the files of
// the backup's log that can take further bytes; see [file.Checked].
func (o *Options) continuePartition(name string, damaged map[string]bool, growing map[string]int64) error {
	from, to := o.FS.PathJoin(o.Log, name), o.FS.PathJoin(o.Dir, "log", name)
	names, err := o.FS.List(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range names {
		first, kind, _ := strings.Cut(n, ".")
		if strings.Trim(first, "0123456789") != "" || kind != "log" && kind != "redacted" && kind != "redacting" {
			continue
		}
		src, dst := o.FS.PathJoin(from, n), o.FS.PathJoin(to, n)
		_, err := o.FS.Stat(o.FS.PathJoin(to, first+".log"))
		if both := err == nil; both && kind == "log" && damaged[src] {
			// The same bytes as far as the backup has records: a segment only grows. What was
			// redacted since is overwritten by the start.
			if at, ok := growing[dst]; ok {
				err = o.splice(src, dst, at)
			}
			err = errors.Join(err, o.mark(o.FS.PathJoin(from, first+".redacted"), o.FS.PathJoin(to, first+".redacting")))
		} else {
			err = vfs.Copy(o.FS, src, dst)
		}
		if err != nil {
			return err
		}
	}
	return o.sync(to)
}

// mark makes an empty file where there is another.
func (o *Options) mark(where, path string) error {
	if _, err := o.FS.Stat(where); err != nil {
		return nil
	}
	f, err := o.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// splice makes dst, from a position on, what src is. What dst had there were no records: a
// mark, a write that was cut off, or zeros.
func (o *Options) splice(src, dst string, at int64) (err error) {
	in, err := o.FS.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	size, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := o.FS.OpenReadWrite(dst, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf := make([]byte, 1<<20)
	for at < size.Size() {
		n, err := in.ReadAt(buf[:min(int64(len(buf)), size.Size()-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%s: %w", src, io.ErrUnexpectedEOF)
		}
		if _, err := out.WriteAt(buf[:n], at); err != nil {
			return err
		}
		at += int64(n)
	}
	return out.Sync()
}
