package segments

import (
	"cmp"
	"encoding/json"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/segment"
)

// The bounds of what a preview shows.
const (
	sampleSize = 10 // profiles
	// sampleEvents is how many events of each are read to explain why they belong.
	sampleEvents = 10_000
)

// preview answers POST /segments/preview: the members that a segment would have,
// without saving it.
func (a *API) preview(c *handler.Call) (any, error) {
	var in struct {
		Definition json.RawMessage `json:"definition"`
		SegmentID  string          `json:"segment_id"`
		Explain    bool            `json:"explain"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	root, _, err := evaluation.ParseDefinition(in.Definition)
	if err != nil {
		return nil, err
	}
	var saved *segment.Node // the definition that is being edited, nil if none is
	warnings := []string{}
	var reaching map[string]*roaring.Bitmap
	var doubtful map[string]reach.DoubtfulPhones
	ask := a.opts.Evaluation.AskEngine
	if in.Explain {
		ask = a.opts.Evaluation.Ask // events are read
	}
	q, err := ask(c, func(q *evaluation.Question, v *resolver.View) error {
		warnings = evaluation.Warnings(v, root)
		if err := q.CheckDefinition(v, root); err != nil {
			return err
		}
		roots := []*segment.Node{root}
		if in.SegmentID != "" {
			if _, ok := q.Lookup(in.SegmentID); !ok {
				return handler.BadField("segment_id", "segment_id: there is no segment with this id; leave it out for a definition that replaces none")
			}
			saved = &segment.Node{Kind: segment.KindSegment, Segment: &segment.Ref{SegmentID: in.SegmentID, Member: true}}
			roots = append(roots, saved)
		}
		q.Gather(v, roots...)
		reaching, doubtful = v.Reach().Channels(), v.Reach().DoubtfulPhones()
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer q.Close()
	who, parts, err := q.WhoByPart(q.Ctx, root)
	if err != nil {
		return nil, err
	}
	count, asOf := who.GetCardinality(), record.Time(q.AtMs)
	answer := map[string]any{"count": count, "as_of": asOf, "warnings": warnings}
	if saved != nil {
		now, err := q.Who(q.Ctx, saved)
		if err != nil {
			return nil, err
		}
		stay := now.AndCardinality(who)
		answer["entering"], answer["leaving"] = count-stay, now.GetCardinality()-stay
	}
	all := q.Profiles().Universe().GetCardinality()
	if anonymous := q.Profiles().Anonymous(); anonymous != nil && !root.Admits(true) {
		all -= anonymous.AndCardinality(q.Profiles().Universe())
	}
	share := 0.0
	if all > 0 {
		share = float64(count) / float64(all)
	}
	pieces := make([]previewPart, len(parts))
	for i, p := range parts {
		pieces[i] = previewPart(p)
	}
	reachable := make(map[string]uint64, len(reaching))
	for channel, set := range reaching {
		set.And(who)
		refused := uint64(0)
		if d, some := doubtful[channel]; some {
			if refused, err = a.refusedNumbers(c, channel, set, d); err != nil {
				return nil, err
			}
		}
		reachable[channel] = set.GetCardinality() - refused
	}
	var ordinals []uint32
	for it := who.Iterator(); it.HasNext() && len(ordinals) < sampleSize; {
		ordinals = append(ordinals, it.Next())
	}
	found, sample, message, err := q.Describe(ordinals)
	if err != nil {
		return nil, err
	}
	answer["profiles"], answer["share"], answer["parts"], answer["sample"], answer["reachable"] = all, share, pieces, sample, reachable
	if in.Explain {
		explained := make([]evaluation.Explanation, len(found))
		for i, p := range found {
			var less string
			if explained[i], less, err = q.Explain(root, p, sampleEvents); err != nil {
				return nil, err
			}
			message = cmp.Or(message, less)
		}
		answer["explained"] = explained
	}
	return handler.Note{Data: answer, Message: message}, nil
}

// previewPart is a part of a definition as it is answered.
type previewPart struct {
	Path    string `json:"path"`
	Count   uint64 `json:"count"`
	Without uint64 `json:"without"`
}

// The bounds of looking at the holders of numbers, in a preview and in one read of the
// state.
const (
	maxDoubtful   = 1000
	doubtfulPiece = 500
)

// refusedNumbers counts those of a set whose number another contact refused on a channel,
// as far as it looks.
func (a *API) refusedNumbers(c *handler.Call, channel string, set *roaring.Bitmap, d reach.DoubtfulPhones) (n uint64, err error) {
	if set.IsEmpty() {
		return 0, nil
	}
	who := roaring.And(set, d.Shown)
	err = a.eachDoubtful(c, d.Refusing, func(v *resolver.View, o uint32) error {
		return v.Reach().OtherSpellings(o, func(other uint32) {
			if set.Contains(other) {
				who.Add(other)
			}
		})
	})
	if err != nil {
		return 0, err
	}
	err = a.eachDoubtful(c, who, func(v *resolver.View, o uint32) error {
		refused, err := v.Reach().NumberRefused(o, channel)
		if refused {
			n++
		}
		return err
	})
	return n, err
}

// eachDoubtful calls fn for the first of some profiles, some in each read of the state.
func (a *API) eachDoubtful(c *handler.Call, who *roaring.Bitmap, fn func(v *resolver.View, ordinal uint32) error) error {
	rest := who.ManyIterator()
	piece := make([]uint32, doubtfulPiece)
	for left := maxDoubtful; left > 0; left -= doubtfulPiece {
		k := rest.NextMany(piece)
		if k == 0 {
			break
		}
		err := c.Read(func(v *resolver.View) error {
			for _, o := range piece[:k] {
				if !v.Profiles().Has(v.Profiles().Root(o)) {
					continue // erased meanwhile
				}
				if err := fn(v, v.Profiles().Root(o)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
