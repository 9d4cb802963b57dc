package fieldcolumns

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

const (
	// pageRows is how many profiles' values are copied when one of them changes while
	// a reader uses the column.
	pageRows = 4096
	// maxValues is how many different values a column has; a field with more has none.
	maxValues = math.MaxUint16 + 1
	// valueOverhead is roughly what a value takes beside its bytes, in list and index.
	valueOverhead = 64
	// maxColumnBytes is what the values of a column take at most.
	maxColumnBytes = 16 << 20
)

// table has the columns of an account.
type table struct {
	columns []*column
	changed changed // since the columns were right
	asked   uint64
}

func (x *table) set(ordinal uint32, f *segment.Fields) {
	for _, c := range x.columns {
		var value []byte
		if f != nil {
			value = c.field.Value(f)
		}
		c.set(ordinal, value)
	}
}

func (x *table) bytes() (n int64) {
	for _, c := range x.columns {
		n += c.bytes()
	}
	return n
}

// wasteful reports whether so many values are no profile's any more that the table is better made
// again.
func (x *table) wasteful() bool {
	for _, c := range x.columns {
		if len(c.values) > 2*c.built+changedLeast {
			return true
		}
	}
	return false
}

// column has the number of a value for each profile. Value 0 is that of profiles without the field.
type column struct {
	field  segment.Column
	pages  [][]uint16
	lent   []bool // pages that a reader may use: they are copied before they change
	values []string
	index  map[string]uint16
	built  int // values when the table was built
	size   int64
	// tooMany says that there are more values than may be: nothing is kept.
	tooMany bool
}

func newColumn(field segment.Column) *column {
	return &column{field: field, values: []string{""}, index: map[string]uint16{"": 0}}
}

func (c *column) bytes() int64 { return c.size + int64(len(c.pages))*pageRows*2 }

func (c *column) set(ordinal uint32, value []byte) {
	if c.tooMany {
		return
	}
	v, ok := c.index[string(value)]
	if !ok {
		c.size += int64(len(value)) + valueOverhead
		if len(c.values) == maxValues || c.size > maxColumnBytes {
			*c = column{field: c.field, tooMany: true}
			return
		}
		v = uint16(len(c.values))
		s := string(value)
		c.values, c.index[s] = append(c.values, s), v
	}
	p := int(ordinal / pageRows)
	for p >= len(c.pages) {
		c.pages, c.lent = append(c.pages, make([]uint16, pageRows)), append(c.lent, false)
	}
	at := &c.pages[p][ordinal%pageRows]
	if *at == v {
		return
	}
	if c.lent[p] {
		c.pages[p], c.lent[p] = append([]uint16(nil), c.pages[p]...), false
		at = &c.pages[p][ordinal%pageRows]
	}
	*at = v
}

// view lends the column.
func (c *column) view() *View {
	for i := range c.lent {
		c.lent[i] = true
	}
	return &View{pages: append([][]uint16(nil), c.pages...), values: c.values[:len(c.values):len(c.values)]}
}

// View is a column as it was at one time. It does not change.
type View struct {
	pages  [][]uint16
	values []string
}

// Members are the ordinals of profiles whose value matches, and of some that are no profile
// (any more). Match is called once for each value, with the empty one for profiles without the field.
func (v *View) Members(match func(value []byte) bool) *roaring.Bitmap {
	holds := make([]bool, maxValues)
	var buf []byte
	for i, s := range v.values {
		buf = append(buf[:0], s...)
		holds[i] = match(buf)
	}
	words := make([]uint64, len(v.pages)*pageRows/64)
	for p, page := range v.pages {
		for w := range pageRows / 64 {
			var word uint64
			for b, code := range page[w*64 : w*64+64] {
				if holds[code] {
					word |= 1 << b
				}
			}
			words[p*pageRows/64+w] = word
		}
	}
	return roaring.FromDense(words, false)
}
