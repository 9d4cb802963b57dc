package columns

import (
	"math"
	"strings"

	"github.com/musterhq/muster/internal/rawjson"
)

// The bounds of what a group keeps of properties.
const (
	// maxKeys is how many different keys.
	maxKeys = 64
	// A dictionary takes at most freeBytes and rowBytes for each event of the group.
	freeBytes = 64 << 10
	rowBytes  = 8
	// valueBytes is the longest text that a dictionary takes.
	valueBytes = 1024
)

// Builder gathers events. It is not safe for concurrent use.
type Builder struct {
	accounts map[uint64]map[string]*group
	rows     int
	last     *group
	lastOf   uint64
}

// NewBuilder returns a builder without events.
func NewBuilder() *Builder { return &Builder{accounts: map[uint64]map[string]*group{}} }

// Rows is how many events there are.
func (b *Builder) Rows() int { return b.rows }

// group is the events of one account and type.
type group struct {
	eventType    string
	offset       []int64 // of the records
	ordinal      []uint32
	timeMs       []int64
	minMs, maxMs int64
	columns      []*column
	// partial means that properties were not read whole: keys without a column may be
	// in them.
	partial bool
	// unreadable means that properties could not be read: no column is right.
	unreadable bool
}

// column is the values of one key.
type column struct {
	raw     string // the key as JSON
	key     string
	numbers []uint32 // of the values, of the first events; those behind have none
	known   map[string]uint32
	texts   texts
	dropped bool
}

// texts are a dictionary: number n is text n−1.
type texts struct {
	data []byte
	ends []uint32
}

func (t *texts) at(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = t.ends[i-1]
	}
	return t.data[from:t.ends[i]]
}

// Add adds an event. The texts are copied.
func (b *Builder) Add(account uint64, eventType []byte, offset int64, ordinal uint32, timeMs int64, properties []byte) {
	g := b.last
	if g == nil || b.lastOf != account || g.eventType != string(eventType) {
		g = b.group(account, eventType)
		b.last, b.lastOf = g, account
	}
	b.rows++
	g.offset, g.ordinal, g.timeMs = append(g.offset, offset), append(g.ordinal, ordinal), append(g.timeMs, timeMs)
	g.minMs, g.maxMs = min(g.minMs, timeMs), max(g.maxMs, timeMs)
	if len(properties) == 0 || g.unreadable {
		return
	}
	next := 0 // keys mostly come in the same order
	if !rawjson.Each(properties, func(key, value []byte) bool {
		c := g.column(key, next)
		if c != nil {
			c.add(len(g.ordinal), value)
		}
		next++
		return true
	}) {
		g.unreadable, g.columns = true, nil
	}
}

// group is that of an account's events of a type.
func (b *Builder) group(account uint64, eventType []byte) *group {
	types := b.accounts[account]
	if types == nil {
		types = map[string]*group{}
		b.accounts[account] = types
	}
	g := types[string(eventType)]
	if g == nil {
		g = &group{eventType: string(eventType), minMs: math.MaxInt64, maxMs: math.MinInt64}
		types[g.eventType] = g
	}
	return g
}

// column is that of a key, which stands in the given place among those of an object; nil
// for one too many.
func (g *group) column(raw []byte, place int) *column {
	if place < len(g.columns) && g.columns[place].raw == string(raw) {
		return g.columns[place]
	}
	for _, c := range g.columns {
		if c.raw == string(raw) {
			return c
		}
	}
	if len(g.columns) >= maxKeys {
		g.partial = true
		return nil
	}
	key, ok := rawjson.Unquote(nil, raw)
	if !ok {
		g.partial = true
		return nil
	}
	c := &column{raw: strings.Clone(string(raw)), key: string(key), known: map[string]uint32{}}
	g.columns = append(g.columns, c)
	return c
}

// add adds the value of the event that makes the group have so many.
func (c *column) add(rows int, value []byte) {
	if c.dropped {
		return
	}
	n := c.number(rows, value)
	if n == 0 {
		c.drop()
		return
	}
	for len(c.numbers) < rows-1 {
		c.numbers = append(c.numbers, 0)
	}
	if len(c.numbers) < rows { // else the key is there twice: the first counts
		c.numbers = append(c.numbers, n)
	}
}

// number is that of a value in the dictionary of a column of so many events, which it enters; 0
// where it is one too many, or too long.
func (c *column) number(rows int, value []byte) uint32 {
	if n, ok := c.known[string(value)]; ok {
		return n
	}
	if len(value) > valueBytes || len(c.texts.data)+len(value) > freeBytes+rowBytes*rows {
		return 0
	}
	c.texts.data = append(c.texts.data, value...)
	c.texts.ends = append(c.texts.ends, uint32(len(c.texts.data)))
	n := uint32(len(c.texts.ends))
	c.known[string(value)] = n
	return n
}

func (c *column) drop() { *c = column{raw: c.raw, key: c.key, dropped: true} }
