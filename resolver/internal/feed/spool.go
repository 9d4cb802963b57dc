package feed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/wire"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/statefiles"
	"github.com/musterhq/muster/segment"
)

const (
	spoolMagic = 0x324c5053 // "SPL2"
	// spoolMagic1 is the layout before there were transitions.
	spoolMagic1 = 0x314c5053 // "SPL1"
)

// spoolPiece is how many bytes of a file are made and written as one piece of work: some
// 100 µs.
const spoolPiece = 64 << 10

// pieces writes a file piece by piece.
type pieces struct {
	to     io.Writer
	buf    []byte // what is not written yet
	sum    uint32 // of what is
	n      int64
	worked func() // after each piece
	err    error
}

// flush writes what is in buf.
func (p *pieces) flush() {
	p.sum = crc32.Update(p.sum, statefiles.Castagnoli, p.buf)
	if p.err == nil {
		_, p.err = p.to.Write(p.buf)
	}
	p.n += int64(len(p.buf))
	p.buf = p.buf[:0]
	p.worked()
}

// room makes some in buf.
func (p *pieces) room() {
	if len(p.buf) >= spoolPiece {
		p.flush()
	}
}

func (p *pieces) u32(v uint32) {
	p.room()
	p.buf = binary.LittleEndian.AppendUint32(p.buf, v)
}

func (p *pieces) u64(v uint64) {
	p.room()
	p.buf = binary.LittleEndian.AppendUint64(p.buf, v)
}

func (p *pieces) bytes(b []byte) {
	for len(b) > 0 {
		p.room()
		n := min(len(b), spoolPiece-len(p.buf))
		p.buf, b = append(p.buf, b[:n]...), b[n:]
	}
}

// encodeBatch writes a batch in the layout of spool files (docs/formats.md).
func encodeBatch(p *pieces, b *query.Batch) {
	p.u32(spoolMagic)
	p.u32(uint32(b.Partition))
	p.u64(uint64(b.From))
	p.u64(uint64(b.To))
	p.u32(uint32(b.Rows()))
	p.u32(uint32(len(b.Aliases)))
	for _, v := range b.Account {
		p.u64(v)
	}
	for _, v := range b.Offset {
		p.u64(uint64(v))
	}
	for _, v := range b.Index {
		p.u32(v)
	}
	for _, v := range b.Ordinal {
		p.u32(v)
	}
	for _, v := range b.TimeMs {
		p.u64(uint64(v))
	}
	for _, s := range [...]*query.Strings{&b.EventType, &b.Properties, &b.IdempotencyKey} {
		for _, e := range s.Ends {
			p.u32(e)
		}
		p.u32(uint32(len(s.Data)))
		p.bytes(s.Data)
	}
	for _, a := range b.Aliases {
		p.u64(a.Account)
		p.u64(uint64(a.Offset))
		p.u32(a.Index)
		p.u32(a.Ordinal)
		p.u32(a.Winner)
	}
	p.u32(uint32(len(b.Transitions)))
	for _, t := range b.Transitions {
		p.u64(t.Account)
		p.u64(uint64(t.Key.Offset))
		p.u32(t.Key.Seq)
		p.u32(t.Ordinal)
		entered := byte(0)
		if t.Entered {
			entered = 1
		}
		p.buf = append(p.buf, entered, byte(t.Cause))
		p.u64(uint64(t.AtMs))
		p.buf = wire.AppendBlock(p.buf, []byte(t.Segment))
	}
	p.flush()
	p.u32(p.sum)
	p.flush()
}

var errSpool = errors.New("spool file is damaged")

// CheckFile says what is wrong with the file of an item: that of the rows of the records
// from from on, below to. The error wraps [statefiles.ErrDamaged] unless reading itself failed.
func CheckFile(fs vfs.FS, path string, from, to int64) error {
	_, err := readSpoolFile(fs, path, from, to)
	if errors.Is(err, errSpool) {
		return fmt.Errorf("%w: %w", statefiles.ErrDamaged, err)
	}
	return err
}

// decodeBatch reads what encodeBatch wrote; it never panics.
func decodeBatch(data []byte) (*query.Batch, error) {
	if len(data) < 4 || crc32.Checksum(data[:len(data)-4], statefiles.Castagnoli) != binary.LittleEndian.Uint32(data[len(data)-4:]) {
		return nil, fmt.Errorf("%w: checksum", errSpool)
	}
	r := wire.Reader{B: data[:len(data)-4]}
	magic := r.U32()
	if magic != spoolMagic && magic != spoolMagic1 {
		return nil, fmt.Errorf("%w: not a spool file of this version", errSpool)
	}
	b := &query.Batch{Partition: int(r.U32())}
	b.From, b.To = int64(r.U64()), int64(r.U64())
	rows, aliases := int(r.U32()), int(r.U32())
	if rows*(8+8+4+4+8) > len(r.B) || aliases*28 > len(r.B) {
		return nil, fmt.Errorf("%w: too few bytes for its rows", errSpool)
	}
	for range rows {
		b.Account = append(b.Account, r.U64())
	}
	for range rows {
		b.Offset = append(b.Offset, int64(r.U64()))
	}
	for range rows {
		b.Index = append(b.Index, r.U32())
	}
	for range rows {
		b.Ordinal = append(b.Ordinal, r.U32())
	}
	for range rows {
		b.TimeMs = append(b.TimeMs, int64(r.U64()))
	}
	for _, s := range [...]*query.Strings{&b.EventType, &b.Properties, &b.IdempotencyKey} {
		var last uint32
		for range rows {
			e := r.U32()
			if e < last {
				return nil, fmt.Errorf("%w: string ends run backwards", errSpool)
			}
			last = e
			s.Ends = append(s.Ends, e)
		}
		n := r.U32()
		if n != last {
			return nil, fmt.Errorf("%w: string column of the wrong length", errSpool)
		}
		s.Data = append(s.Data, r.Take(uint64(n))...)
	}
	for range aliases {
		b.Aliases = append(b.Aliases, query.Alias{Account: r.U64(), Offset: int64(r.U64()), Index: r.U32(), Ordinal: r.U32(), Winner: r.U32()})
	}
	if magic == spoolMagic {
		n := int(r.U32())
		if n*35 > len(r.B) {
			return nil, fmt.Errorf("%w: too few bytes for its transitions", errSpool)
		}
		names := map[string]string{} // few segments, many transitions
		for range n {
			t := query.Transition{Account: r.U64(), Key: query.TransitionKey{Offset: int64(r.U64()), Seq: r.U32()}, Ordinal: r.U32()}
			t.Entered, t.Cause, t.AtMs = r.U8() == 1, segment.Cause(r.U8()), int64(r.U64())
			id := r.Block()
			name, ok := names[string(id)]
			if !ok {
				name = string(id)
				names[name] = name
			}
			t.Segment = name
			b.Transitions = append(b.Transitions, t)
		}
	}
	if r.Bad || len(r.B) != 0 {
		return nil, fmt.Errorf("%w: wrong length", errSpool)
	}
	return b, nil
}

// writeSpoolFile writes a batch durably (not its directory entry) and returns
// the file's size. It calls worked after each piece of work.
func writeSpoolFile(fs vfs.FS, path string, b *query.Batch, worked func()) (int64, error) {
	f, err := statefiles.Create(fs, path)
	if err != nil {
		return 0, err
	}
	p := pieces{to: f, worked: worked}
	encodeBatch(&p, b)
	if err = p.err; err == nil {
		err = f.Sync()
	}
	return p.n, errors.Join(err, f.Close())
}

// readSpoolFile returns the rows of the records from from on, below to. A file that is not
// there is damaged as well.
func readSpoolFile(fs vfs.FS, path string, from, to int64) (*query.Batch, error) {
	data, err := statefiles.Read(fs, path)
	if statefiles.IsNotExist(err) {
		return nil, fmt.Errorf("%w: %w", errSpool, err)
	}
	if err != nil {
		return nil, err
	}
	b, err := decodeBatch(data)
	if err == nil && (b.From != from || b.To != to) {
		err = fmt.Errorf("%w: it has records %d to %d instead of %d to %d", errSpool, b.From, b.To, from, to)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}
