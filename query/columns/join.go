package columns

import (
	"context"
	"encoding/binary"
	"slices"
)

// Join makes one file of those that have the records from ≤ offset < to, without history. joined
// is false, and no file was made, where files do not have all of these records, or one has given
// up a key that those before it have not: together with their events it may have a column. Nothing
// may be forgotten meanwhile.
func (s *Set) Join(ctx context.Context, partition int, from, to int64) (joined bool, err error) {
	files := s.covering(partition, from, to)
	defer s.close(files)
	if len(files) < 2 {
		return false, nil
	}
	b, work := NewBuilder(), newScratch()
	for _, x := range files {
		for _, e := range x.accounts {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			whole, err := b.addAccount(x, e, work)
			if err != nil {
				s.drop(x, err)
				return false, nil
			}
			if !whole {
				return false, nil
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return true, s.Add(partition, from, to, b)
}

// covering are the files that have the records from ≤ offset < to, in use; none unless they
// have all of them and no others.
func (s *Set) covering(partition int, from, to int64) (out []*file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := from
	for _, x := range s.files[partition] {
		if x.from == at {
			out = append(out, x)
			at = x.to
		}
	}
	if at != to {
		return nil
	}
	for _, x := range out {
		x.use()
	}
	return out
}

// addAccount adds the events that a file has of an account, but not their offsets, which files do
// not have: the builder is good only for writing a file then. whole is false where the file has
// given up a key and the builder has not.
func (b *Builder) addAccount(x *file, e accountEntry, work *scratch) (whole bool, err error) {
	whole = true
	err = x.eachGroup(e, func(eventType []byte, g *fileGroup) (more bool, err error) {
		b.rows += g.rows
		whole, err = b.group(e.number, eventType).addFile(x, g, work)
		return whole, err
	})
	return whole, err
}

// addFile adds the events of a file's group.
func (g *group) addFile(x *file, from *fileGroup, work *scratch) (whole bool, err error) {
	work.begin()
	ordinal, times, err := x.events(from, work)
	if err != nil {
		return false, err
	}
	before := len(g.ordinal)
	rows := before + from.rows
	g.ordinal, g.timeMs = slices.Grow(g.ordinal, from.rows)[:rows], slices.Grow(g.timeMs, from.rows)[:rows]
	for i := range from.rows {
		g.ordinal[before+i] = binary.LittleEndian.Uint32(ordinal.raw[4*i:])
	}
	times.decode(g.timeMs[before:], 0)
	g.minMs, g.maxMs = min(g.minMs, from.minMs), max(g.maxMs, from.maxMs)
	if g.unreadable || from.state == groupUnreadable {
		g.unreadable, g.columns = true, nil
		return true, nil
	}
	for i := range from.columns {
		c := &from.columns[i]
		at := slices.IndexFunc(g.columns, func(have *column) bool { return have.key == c.key })
		if at < 0 {
			if g.partial || len(g.columns) >= maxKeys {
				g.partial = true // the events before may have the key, or it is one too many
				continue
			}
			at = len(g.columns)
			g.columns = append(g.columns, &column{key: c.key, known: map[string]uint32{}})
			if c.dropped && before == 0 {
				// A dictionary's bound depends on the events before: more behind do not help.
				g.columns[at].drop()
			}
		}
		if g.columns[at].dropped {
			continue
		}
		if c.dropped {
			return false, nil
		}
		if err := g.columns[at].addFile(x, c, before, rows, work); err != nil {
			return false, err
		}
	}
	if from.state == groupPartial {
		// The file's events may have the keys of others.
		g.partial = true
		g.columns = slices.DeleteFunc(g.columns, func(have *column) bool {
			return !slices.ContainsFunc(from.columns, func(c fileColumn) bool { return c.key == have.key })
		})
	}
	return true, nil
}

// addFile adds the values of a file's column, which belong to the events before ≤ place < rows.
func (c *column) addFile(x *file, from *fileColumn, before, rows int, work *scratch) error {
	work.begin()
	v, err := x.column(from, rows-before, work)
	if err != nil {
		return err
	}
	for len(c.numbers) < before {
		c.numbers = append(c.numbers, 0)
	}
	c.numbers = slices.Grow(c.numbers, rows-before)[:rows]
	numbers := c.numbers[before:]
	v.numbers.decode(numbers, 0)
	mine := make([]uint32, len(v.texts.ends)+1) // by the file's number
	for i := range v.texts.ends {
		if mine[i+1] = c.number(rows, v.texts.at(i)); mine[i+1] == 0 {
			c.drop()
			return nil
		}
	}
	for i, n := range numbers {
		if int(n) >= len(mine) {
			return x.damaged("a number without a value")
		}
		numbers[i] = mine[n]
	}
	return nil
}
