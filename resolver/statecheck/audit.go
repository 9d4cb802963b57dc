package statecheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// AuditOptions say what [Audit] compares.
type AuditOptions struct {
	FS vfs.FS
	// Dir is the state's directory, which no process has open. It is only read.
	Dir string
	// Temp is an empty directory for files. It takes as much space as the state, twice.
	Temp string
	// LogName names the log, Start and End are the bounds of the partition's records.
	LogName    string
	Partition  int
	Start, End int64
	// Skip are the offsets of records that are passed over, see [Options.Skip].
	Skip []int64
	// Read calls fn with the records from from to End. data is valid until fn returns.
	Read func(ctx context.Context, from int64, fn func(offset int64, data []byte) error) error
	// Rows takes what history must have of the records, in order; nil does not.
	Rows func(ctx context.Context, rows *query.Batch) error
	// Progress is called after each record with the next offset, unless it is nil.
	Progress func(next int64)
}

// Audited is the result of [Audit].
type Audited struct {
	// From is the first record that was replayed: 0, or where the oldest checkpoint of a
	// trimmed log stands.
	From int64
	// Replayed tells that there was something to replay from.
	Replayed bool
	// Findings are about the checkpoints that are whole. Offset is that of the checkpoint
	// in all of them.
	Findings []Finding
	// Erased are the ordinals of erased profiles by account, of which history has nothing.
	Erased map[uint64][]uint32
}

const (
	// auditCache bounds the documents that are kept in memory, and auditGeneration what
	// may change before it is written to files. The rest takes the memory that serving
	// the state takes.
	auditCache      = 64 << 20
	auditGeneration = 64 << 20
	// auditRows and auditRowBytes are how many rows are handed over at once.
	auditRows     = 122_880
	auditRowBytes = 32 << 20
)

// Audit replays the records of a partition from the beginning of its log, to a state of
// its own, and compares that with each checkpoint that is whole by its checksums. Of a
// trimmed log it replays from the oldest checkpoint on. The error says that it could not
// be done, such as because a record cannot be applied.
func Audit(ctx context.Context, o AuditOptions) (out Audited, err error) {
	p := checkpoints(o.FS, o.Dir, o.LogName, o.Partition)
	offsets, err := p.List()
	if err != nil {
		return out, err
	}
	stored := map[int64]string{} // hashes by offset
	base := checkpoint.Candidate{}
	for _, offset := range offsets {
		c, err := p.Promising(offset, o.Start, o.End)
		if err != nil {
			continue // [Inspect] says why
		}
		sum, err := o.hashOf(p, c)
		switch {
		case errors.Is(err, statefiles.ErrDamaged):
			out.Findings = append(out.Findings, o.finding(p, offset, err))
		case err != nil:
			return out, err
		default:
			if o.Start > 0 && base.Version == 0 {
				base = c
			}
			stored[offset] = sum
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
	}
	if o.Start > 0 && base.Version == 0 {
		return out, nil
	}
	out.From, out.Replayed = base.Next, true
	m, ckpt, err := o.load(p, base, "replay")
	if err != nil {
		return out, err
	}
	a := auditor{o: &o, m: m, ckpt: ckpt, rows: query.Batch{Partition: o.Partition, From: m.Next(), To: m.Next()}}
	defer func() { err = errors.Join(err, a.m.Close()) }()
	compare := func() error {
		want, there := stored[a.m.Next()]
		if !there || a.m.Next() == base.Next && base.Version != 0 {
			return nil
		}
		have, err := a.m.Hash()
		if err != nil {
			return err
		}
		f := Finding{Path: p.Path(checkpoint.DirCheckpoints, checkpoint.Name(a.m.Next())), Offset: a.m.Next(), Note: fmt.Sprintf("it is what the records from %d on make (hash %.16s)", base.Next, have)}
		if have != want {
			f = o.finding(p, a.m.Next(), fmt.Errorf("it is not the state that the records from %d on make: its hash is %.16s instead of %.16s", base.Next, want, have))
		}
		out.Findings = append(out.Findings, f)
		return nil
	}
	if err := compare(); err != nil {
		return out, err
	}
	err = o.Read(ctx, base.Next, func(offset int64, data []byte) error {
		if err := a.apply(ctx, offset, data); err != nil {
			return err
		}
		return compare()
	})
	if err == nil {
		err = a.flush(ctx)
	}
	out.Erased = a.m.ErasedProfiles()
	return out, err
}

func (o *AuditOptions) finding(p *checkpoint.Dir, offset int64, err error) Finding {
	return Finding{Path: p.Path(checkpoint.DirCheckpoints, checkpoint.Name(offset)), Offset: offset, Err: err, Repairable: o.Start == 0}
}

// load makes a machine of a checkpoint, or an empty one, with files in Temp.
func (o *AuditOptions) load(p *checkpoint.Dir, c checkpoint.Candidate, name string) (m *resolver.Machine, ckpt *checkpoint.Dir, err error) {
	ckpt = &checkpoint.Dir{FS: linkOrCopy{o.FS}, Root: o.FS.PathJoin(o.Temp, name), Source: p.Root, Log: o.LogName, Damaged: func(error) {}}
	defer func() {
		if r := recover(); r != nil && c.Version != 0 {
			err = fmt.Errorf("%w: load checkpoint %d: %w", statefiles.ErrDamaged, c.Next, panics.Wrap(r))
		} else if r != nil {
			panic(r)
		}
	}()
	if err := ckpt.Prepare(); err != nil {
		return nil, nil, err
	}
	m, err = resolver.LoadCheckpoint(ckpt, c.Manifest, c.IDs, auditCache, slog.New(slog.DiscardHandler))
	if err != nil && c.Version != 0 && !statefiles.IsEnvironment(err) && !errors.Is(err, resolver.ErrNewer) {
		err = fmt.Errorf("%w: load checkpoint %d: %w", statefiles.ErrDamaged, c.Next, err)
	}
	return m, ckpt, err
}

// hashOf is the hash of the state in a checkpoint.
func (o *AuditOptions) hashOf(p *checkpoint.Dir, c checkpoint.Candidate) (sum string, err error) {
	m, ckpt, err := o.load(p, c, "stored")
	if err != nil {
		return "", err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: read checkpoint %d: %w", statefiles.ErrDamaged, c.Next, panics.Wrap(r))
		}
		err = errors.Join(err, m.Close(), o.FS.RemoveAll(ckpt.Root))
	}()
	if sum, err = m.Hash(); err != nil && !statefiles.IsEnvironment(err) {
		err = fmt.Errorf("%w: read checkpoint %d: %w", statefiles.ErrDamaged, c.Next, err)
	}
	return sum, err
}

// auditor is the machine that records are replayed to.
type auditor struct {
	o    *AuditOptions
	m    *resolver.Machine
	ckpt *checkpoint.Dir
	rows query.Batch
	out  resolver.Outcome
}

func (a *auditor) apply(ctx context.Context, offset int64, data []byte) (err error) {
	func() {
		defer func() {
			if r := recover(); r != nil {
				err = panics.Wrap(r)
			}
		}()
		if slices.Contains(a.o.Skip, offset) {
			err = a.m.Skip(offset, data)
		} else {
			err = a.m.Apply(offset, data, &a.rows, &a.out)
		}
	}()
	if err != nil {
		return fmt.Errorf("record %d of partition %d: %w", offset, a.o.Partition, err)
	}
	a.rows.To = a.m.Next()
	full := a.m.GenerationBytes() > auditGeneration && !a.m.Lagging()
	if full || a.rows.Rows() >= auditRows || a.rows.Bytes() >= auditRowBytes {
		if err := a.flush(ctx); err != nil {
			return err
		}
	}
	if full {
		if err := a.checkpoint(); err != nil {
			return err
		}
	}
	if a.o.Progress != nil {
		a.o.Progress(a.m.Next())
	}
	return nil
}

// flush hands over the rows.
func (a *auditor) flush(ctx context.Context) error {
	if a.o.Rows != nil && a.rows.From < a.rows.To {
		if err := a.o.Rows(ctx, &a.rows); err != nil {
			return err
		}
	}
	a.rows.Reset()
	a.rows.Partition, a.rows.From, a.rows.To = a.o.Partition, a.m.Next(), a.m.Next()
	return nil
}

// checkpoint writes what changed to files, which frees its memory.
func (a *auditor) checkpoint() error { return a.m.MoveOn(a.ckpt, nil) }

// linkOrCopy copies files to another file system instead of linking them.
type linkOrCopy struct{ vfs.FS }

func (fs linkOrCopy) Link(from, to string) error { return vfs.LinkOrCopy(fs.FS, from, to) }

// SetStaleAside gives checkpoints of a partition's state in dir other names, as damaged
// ones are given: [Audit] says that they are not what their log makes.
func SetStaleAside(fs vfs.FS, dir string, partition int, offsets []int64) error {
	p := checkpoints(fs, dir, "", partition)
	return p.SetAside(slices.Sorted(slices.Values(offsets)))
}
