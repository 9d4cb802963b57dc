package segmenttest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/segment"
)

// Gen draws test cases. It is not safe for concurrent use.
type Gen struct{ r *rand.Rand }

// New starts a generator at a seed.
func New(seed uint64) *Gen { return &Gen{rand.New(rand.NewPCG(seed, 0x6d7573746572))} }

// Rand is the generator's source, for draws of the test's own.
func (g *Gen) Rand() *rand.Rand { return g.r }

// Case is a definition with profiles to judge.
type Case struct {
	// Definition is the text that Node was parsed from.
	Definition []byte
	Node       *segment.Node
	// Others are the segments that definitions refer to, by id; they refer to
	// none themselves.
	Others   map[string]*segment.Node
	AtMs     int64
	Profiles []*segment.NaiveProfile
}

// Refs finds the case's other segments; it is the argument of
// [segment.Node.Naive].
func (c *Case) Refs(id string) (*segment.Node, bool) {
	n, ok := c.Others[id]
	return n, ok
}

// Members are the indexes of the profiles that the oracle finds.
func (c *Case) Members() []int {
	var members []int
	for i, p := range c.Profiles {
		if c.Node.Naive(p, c.AtMs, c.Refs) {
			members = append(members, i)
		}
	}
	return members
}

// Case draws a case of n profiles.
func (g *Gen) Case(n int) *Case {
	c := &Case{Definition: g.DefinitionJSON(), AtMs: g.At(), Others: map[string]*segment.Node{}}
	c.Node = mustParse(c.Definition)
	for _, id := range segmentIDs[:2] { // the third is never found
		c.Others[id] = mustParse(g.group(2, false))
	}
	for range n {
		c.Profiles = append(c.Profiles, g.Profile())
	}
	return c
}

// Definition draws a parsed definition.
func (g *Gen) Definition() *segment.Node { return mustParse(g.DefinitionJSON()) }

// Activity draws an activity condition alone.
func (g *Gen) Activity() *segment.Activity { return mustParse(g.activity()).Activity }

// DefinitionJSON draws the text of a definition that [segment.Parse] accepts.
func (g *Gen) DefinitionJSON() []byte {
	if g.chance(30) {
		return includeSome(g.leaf(true))
	}
	return includeSome(g.group(3, true))
}

// includeSome lets some definitions include anonymous profiles. It draws nothing, so that
// seeds that found faults draw the same still.
func includeSome(definition []byte) []byte {
	switch len(definition) % 5 {
	case 0:
		return append([]byte(`{"include_anonymous":true, `), definition[1:]...)
	case 1:
		return append([]byte(`{"include_anonymous": false,`), definition[1:]...)
	}
	return definition
}

func mustParse(definition []byte) *segment.Node {
	n, err := segment.Parse(definition, segment.Limits{})
	if err != nil {
		panic(fmt.Sprintf("segmenttest: drew a bad definition: %v\n%s", err, definition))
	}
	return n
}

func (g *Gen) chance(percent int) bool { return g.r.IntN(100) < percent }

func pick[T any](g *Gen, from []T) T { return from[g.r.IntN(len(from))] }

// object writes fields, each a key and raw JSON, in any order with white space
// here and there; empty fields are left out.
func (g *Gen) object(fields ...[2]string) []byte {
	g.r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	var parts []string
	for _, f := range fields {
		if f[1] != "" {
			parts = append(parts, quote(f[0])+pick(g, []string{":", ":", ": ", "\n:\t"})+f[1])
		}
	}
	return []byte("{" + strings.Join(parts, pick(g, []string{",", ", "})) + "}")
}

func quote(s string) string { return string(rawjson.AppendString(nil, s)) }

// escaped writes a string the long way now and then.
func (g *Gen) escaped(s string) string {
	if !g.chance(10) {
		return quote(s)
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r > 0xFFFF {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	b.WriteByte('"')
	return b.String()
}

func array(parts []string) string { return "[" + strings.Join(parts, ",") + "]" }

// unquote undoes quote.
func unquote(raw string) string {
	s, _ := rawjson.Unquote(nil, []byte(raw))
	return string(s)
}
