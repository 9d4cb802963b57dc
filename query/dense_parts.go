package query

import (
	"context"
	"math/bits"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

const (
	// denseBytes bounds the answers to conditions that are laid out as plain bits.
	denseBytes = 128 << 20
	// denseWords is how many words are combined at once: those of all nodes stay in the
	// processor's cache.
	denseWords = 2048
)

// denseParts counts the parts of a definition over plain bits, one per ordinal, and finds
// the members. Each condition is laid out once; for each part the rest is combined of
// what is there already.
//
// The members with x in the place of a node are x ∩ inside ∪ outside, with two sets that
// depend on what surrounds the node alone.
type denseParts struct {
	words    int
	universe []uint64
	root     *denseNode
	parts    []*denseNode // below the root, in order of the walk
	scratch  [][]uint64   // of denseWords, free
	held     []*[]uint64  // of plainBits, all that were laid out
}

// plainBits are sets as plain bits that are free. While a user types, each key asks for
// as many again, and what is thrown away makes the garbage collector run meanwhile.
var plainBits sync.Pool // of *[]uint64

// blank is that many empty words, until release.
func (d *denseParts) blank(words int) []uint64 {
	x, _ := plainBits.Get().(*[]uint64)
	if x == nil || cap(*x) < words {
		fresh := make([]uint64, words)
		x = &fresh
	}
	*x = (*x)[:words]
	clear(*x)
	d.held = append(d.held, x)
	return *x
}

// release ends the use of what was laid out.
func (d *denseParts) release() {
	for _, x := range d.held {
		plainBits.Put(x)
	}
	d.held = nil
}

type denseNode struct {
	kids  []*denseNode
	every bool // must all hold, not one
	// leaf is the whole answer to a condition, now the node's bits in the words at hand.
	leaf, now      []uint64
	count, without uint64
}

// denseFits reports whether so many conditions can be laid out over a universe.
func denseFits(universe *roaring.Bitmap, leaves int) bool {
	return !universe.IsEmpty() && (uint64(universe.Maximum())/64+1)*8*uint64(leaves+1) <= denseBytes
}

// newDense lays out the answers to the conditions of a definition. The caller releases it.
func newDense(v *evaluator, root *segment.Node) (*denseParts, error) {
	d := &denseParts{words: int(v.Profiles.Universe().Maximum()/64) + 1}
	d.universe = d.layOut(v.admitted)
	var err error
	if d.root, err = d.node(v, root); err != nil {
		d.release()
		return nil, err
	}
	return d, nil
}

// layOut is a set as plain bits, as many as the universe has.
func (d *denseParts) layOut(b *roaring.Bitmap) []uint64 {
	words := d.blank(max(d.words, int(b.DenseSize())))
	b.WriteDenseTo(words)
	return words[:d.words]
}

func (d *denseParts) node(v *evaluator, n *segment.Node) (*denseNode, error) {
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	out := &denseNode{every: n.Match == segment.MatchAll}
	if n.Kind != segment.KindGroup {
		b, negate, err := v.leaf(n, 0)
		if err != nil {
			return nil, err
		}
		out.leaf = d.layOut(b)
		if negate {
			for i, w := range d.universe {
				out.leaf[i] = w &^ out.leaf[i]
			}
		}
		return out, nil
	}
	out.now = make([]uint64, denseWords)
	for _, c := range n.Conditions {
		at := len(d.parts)
		d.parts = append(d.parts, nil)
		kid, err := d.node(v, c)
		if err != nil {
			return nil, err
		}
		d.parts[at] = kid
		out.kids = append(out.kids, kid)
	}
	return out, nil
}

// run counts, and returns the members.
func (d *denseParts) run(ctx context.Context) (*roaring.Bitmap, error) {
	members := d.blank(d.words)
	for from := 0; from < d.words; from += denseWords {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		to := min(from+denseWords, d.words)
		all := d.universe[from:to]
		d.root.combine(from, to)
		for i, w := range d.root.now[:to-from] {
			members[from+i] = w & all[i]
		}
		for _, p := range d.parts {
			p.count += countBoth(p.now, all)
		}
		// With the root left out everybody is there, with anything in its place that.
		inside, outside := d.take(), d.take()
		for i := range all {
			inside[i], outside[i] = ^uint64(0), 0
		}
		d.leaveOut(d.root, inside[:len(all)], outside[:len(all)], all, countBoth(all, all))
		d.scratch = append(d.scratch, inside, outside)
	}
	return roaring.FromDense(members, true), nil
}

func countBoth(x, y []uint64) (n uint64) {
	for i, w := range y {
		n += uint64(bits.OnesCount64(x[i] & w))
	}
	return n
}

// combine works out the bits of a node and those below in some words.
func (n *denseNode) combine(from, to int) {
	if n.kids == nil {
		n.now = n.leaf[from:to]
		return
	}
	for i, k := range n.kids {
		k.combine(from, to)
		into := n.now[:to-from]
		switch {
		case i == 0:
			copy(into, k.now)
		case n.every:
			and(into, k.now)
		default:
			or(into, k.now)
		}
	}
	n.now = n.now[:to-from]
}

func and(into, x []uint64) {
	for i, w := range x[:len(into)] {
		into[i] &= w
	}
}

func or(into, x []uint64) {
	for i, w := range x[:len(into)] {
		into[i] |= w
	}
}

func (d *denseParts) take() []uint64 {
	if n := len(d.scratch); n > 0 {
		s := d.scratch[n-1]
		d.scratch = d.scratch[:n-1]
		return s[:denseWords]
	}
	return make([]uint64, denseWords)
}

// leaveOut counts the members without each node below n. without is how many there are
// without n itself.
func (d *denseParts) leaveOut(n *denseNode, inside, outside, all []uint64, without uint64) {
	if len(n.kids) == 0 {
		return
	}
	size := len(all)
	// What the kids behind each come to.
	behind := make([][]uint64, len(n.kids))
	for i := len(n.kids) - 2; i >= 0; i-- {
		behind[i] = d.take()[:size]
		copy(behind[i], n.kids[i+1].now)
		if i+1 < len(n.kids)-1 {
			n.join(behind[i], behind[i+1])
		}
	}
	before, others, in, out := d.take()[:size], d.take()[:size], d.take()[:size], d.take()[:size]
	for i, k := range n.kids {
		switch {
		case len(n.kids) == 1:
			k.without += without // nothing is left of n
		case i == 0:
			copy(others, behind[i])
		default:
			copy(others, before)
			if behind[i] != nil {
				n.join(others, behind[i])
			}
		}
		if len(n.kids) > 1 {
			left := uint64(0)
			for j, w := range others {
				left += uint64(bits.OnesCount64((w&inside[j] | outside[j]) & all[j]))
			}
			k.without += left
			copy(in, inside)
			copy(out, outside)
			if n.every {
				and(in, others)
			} else {
				and(others, inside)
				or(out, others)
			}
			d.leaveOut(k, in, out, all, left)
		} else {
			d.leaveOut(k, inside, outside, all, without)
		}
		if i == 0 {
			copy(before, k.now)
		} else {
			n.join(before, k.now)
		}
	}
	for _, b := range behind {
		if b != nil {
			d.scratch = append(d.scratch, b)
		}
	}
	d.scratch = append(d.scratch, before, others, in, out)
}

// join adds a kid to others.
func (n *denseNode) join(into, kid []uint64) {
	if n.every {
		and(into, kid)
	} else {
		or(into, kid)
	}
}
