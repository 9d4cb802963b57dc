package columns

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"slices"

	"github.com/musterhq/muster/internal/wire"
)

// The layout of a file is in docs/formats.md.
const (
	magic      = "MUSTCOL1"
	footerSize = 8 + 4 + 4 + 8
	// groupBytes is how many bytes for each event the columns of a group take; what
	// is beyond, the largest first, is dropped.
	groupBytes = 40
)

// The states of a column in a file, and those of a group.
const (
	columnKept, columnDropped = 0, 1

	groupWhole, groupPartial, groupUnreadable = 0, 1, 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// section is a part of a file: where it is, and the sum of its bytes.
type section struct {
	at   uint64
	size uint32
	sum  uint32
}

func (s section) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, s.at)
	b = binary.LittleEndian.AppendUint32(b, s.size)
	return binary.LittleEndian.AppendUint32(b, s.sum)
}

func readSection(r *wire.Reader) section { return section{r.U64(), r.U32(), r.U32()} }

// writer writes sections one after another.
type writer struct {
	w   *bufio.Writer
	at  uint64
	buf []byte
}

var errSectionSize = errors.New("a section is larger than 4 GiB")

func (w *writer) write(b []byte) (section, error) {
	if uint64(len(b)) > math.MaxUint32 {
		return section{}, errSectionSize
	}
	s := section{w.at, uint32(len(b)), crc32.Checksum(b, castagnoli)}
	_, err := w.w.Write(b)
	w.at += uint64(len(b))
	return s, err
}

// header is what a file says of itself.
type header struct {
	log       string
	partition int
	from, to  int64
	rows      int
}

// writeFile writes a builder's events to a new file and makes it durable.
func writeFile(path string, h header, b *Builder) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	w := &writer{w: bufio.NewWriterSize(f, 1<<20)}
	if _, err := w.write([]byte(magic)); err != nil {
		return err
	}
	accounts := make([]uint64, 0, len(b.accounts))
	for n := range b.accounts {
		accounts = append(accounts, n)
	}
	slices.Sort(accounts)
	index := wire.AppendBlock(nil, []byte(h.log))
	index = binary.LittleEndian.AppendUint32(index, uint32(h.partition))
	index = binary.LittleEndian.AppendUint64(index, uint64(h.from))
	index = binary.LittleEndian.AppendUint64(index, uint64(h.to))
	index = binary.AppendUvarint(index, uint64(h.rows))
	index = binary.AppendUvarint(index, uint64(len(accounts)))
	for _, n := range accounts {
		var directory []byte
		types := make([]string, 0, len(b.accounts[n]))
		for t := range b.accounts[n] {
			types = append(types, t)
		}
		slices.Sort(types)
		directory = binary.AppendUvarint(directory, uint64(len(types)))
		for _, t := range types {
			if directory, err = w.group(directory, b.accounts[n][t]); err != nil {
				return err
			}
		}
		s, err := w.write(directory)
		if err != nil {
			return err
		}
		index = s.append(binary.LittleEndian.AppendUint64(index, n))
	}
	s, err := w.write(index)
	if err != nil {
		return err
	}
	footer := binary.LittleEndian.AppendUint64(nil, s.at)
	footer = binary.LittleEndian.AppendUint32(footer, s.size)
	footer = binary.LittleEndian.AppendUint32(footer, s.sum)
	if _, err := w.write(append(footer, magic...)); err != nil {
		return err
	}
	if err := w.w.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// group writes a group's columns, and appends what the directory says of them.
func (w *writer) group(directory []byte, g *group) ([]byte, error) {
	rows := len(g.ordinal)
	buf := w.buf[:0]
	for _, o := range g.ordinal {
		buf = binary.LittleEndian.AppendUint32(buf, o)
	}
	ordinals, err := w.write(buf)
	if err != nil {
		return nil, err
	}
	width := 4
	if uint64(g.maxMs-g.minMs) > math.MaxUint32 {
		width = 8
	}
	buf = buf[:0]
	for _, t := range g.timeMs {
		if width == 4 {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(t-g.minMs))
		} else {
			buf = binary.LittleEndian.AppendUint64(buf, uint64(t-g.minMs))
		}
	}
	times, err := w.write(buf)
	if err != nil {
		return nil, err
	}
	directory = wire.AppendBlock(directory, []byte(g.eventType))
	directory = binary.AppendUvarint(directory, uint64(rows))
	directory = binary.LittleEndian.AppendUint64(directory, uint64(g.minMs))
	directory = binary.LittleEndian.AppendUint64(directory, uint64(g.maxMs))
	directory = ordinals.append(directory)
	directory = times.append(append(directory, byte(width)))
	state := byte(groupWhole)
	switch {
	case g.unreadable:
		state = groupUnreadable
	case g.partial:
		state = groupPartial
	}
	directory = binary.AppendUvarint(append(directory, state), uint64(len(g.columns)))
	bySize := slices.SortedFunc(slices.Values(g.columns), func(x, y *column) int { return cmp.Compare(x.bytes(rows), y.bytes(rows)) })
	left := freeBytes + groupBytes*rows
	for _, c := range bySize {
		directory = wire.AppendBlock(directory, []byte(c.key))
		if !c.dropped {
			left -= c.bytes(rows)
		}
		if c.dropped || left < 0 {
			directory = append(directory, columnDropped)
			continue
		}
		buf = buf[:0]
		for i := range c.texts.ends {
			buf = wire.AppendBlock(buf, c.texts.at(i))
		}
		texts, err := w.write(buf)
		if err != nil {
			return nil, err
		}
		buf = buf[:0]
		width := c.width()
		for i := range rows {
			n := uint32(0)
			if i < len(c.numbers) {
				n = c.numbers[i]
			}
			switch width {
			case 1:
				buf = append(buf, byte(n))
			case 2:
				buf = binary.LittleEndian.AppendUint16(buf, uint16(n))
			default:
				buf = binary.LittleEndian.AppendUint32(buf, n)
			}
		}
		numbers, err := w.write(buf)
		if err != nil {
			return nil, err
		}
		directory = binary.AppendUvarint(append(directory, columnKept), uint64(len(c.texts.ends)))
		directory = texts.append(directory)
		directory = numbers.append(append(directory, byte(width)))
	}
	w.buf = buf
	return directory, nil
}

// width is how many bytes the number of a value takes.
func (c *column) width() int {
	switch n := len(c.texts.ends); {
	case n < 1<<8:
		return 1
	case n < 1<<16:
		return 2
	}
	return 4
}

// bytes is about what a column takes in a file.
func (c *column) bytes(rows int) int { return len(c.texts.data) + len(c.texts.ends) + c.width()*rows }
