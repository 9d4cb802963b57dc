package segments

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/columns"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// Preview is how long it takes to count an unsaved definition.
type Preview struct {
	// Known is when live segments have all its conditions, Unknown when one has
	// to be asked from history, and Whole when all have. Apart from Known no
	// definition was asked before. Medians of three.
	KnownMillis   float64 `json:"known_ms"`
	UnknownMillis float64 `json:"unknown_ms"`
	WholeMillis   float64 `json:"whole_ms"`
	// First is like Whole, for the first question ever: history has no columns yet.
	// They were there ColumnsSeconds later.
	FirstMillis    float64 `json:"first_ms"`
	ColumnsSeconds float64 `json:"columns_s"`
	// UnknownConditions is how many conditions of Unknown are asked from history; it
	// must be one.
	UnknownConditions int `json:"unknown_conditions"`
}

// previews times previews. At its end history has no columns, as before: what follows
// would else be measured with their upkeep.
func (s *step) previews(ctx context.Context) error {
	id, err := s.a.define(ctx, "preview", knownPreview())
	if err != nil {
		return err
	}
	if err := s.a.waitLive(ctx, id); err != nil {
		return err
	}
	p := &Preview{}
	known := knownPreview()
	millis, unknown, err := s.preview(ctx, true, known, known, known)
	if err != nil {
		return err
	}
	if unknown != 0 {
		return fmt.Errorf("%d conditions of a preview are unknown to the engine, want none", unknown)
	}
	p.KnownMillis = millis
	if p.FirstMillis, _, err = s.preview(ctx, false, wholePreview("searched", 6)); err != nil {
		return err
	}
	begun := time.Now()
	if err := s.a.waitColumns(ctx); err != nil {
		return err
	}
	p.ColumnsSeconds = time.Since(begun).Seconds()
	if p.WholeMillis, _, err = s.preview(ctx, false, wholePreviews()...); err != nil {
		return err
	}
	if p.UnknownMillis, p.UnknownConditions, err = s.preview(ctx, true, unknownPreviews()...); err != nil {
		return err
	}
	s.out.Preview = p
	if err := s.a.undefine(ctx, id); err != nil {
		return err
	}
	return s.dropColumns()
}

// preview counts definitions, one after the other, and returns the median and how many
// conditions of the last were unknown to the engine.
func (s *step) preview(ctx context.Context, leaves bool, texts ...string) (millis float64, unknown int, err error) {
	var times []float64
	for _, text := range texts {
		root, err := segment.Parse(json.RawMessage(text), segment.Limits{})
		if err != nil {
			return 0, 0, err
		}
		begun := time.Now()
		if _, unknown, err = s.a.countUnsaved(ctx, root, leaves); err != nil {
			return 0, 0, err
		}
		times = append(times, float64(time.Since(begun))/1e6)
	}
	return report.Median(times), unknown, nil
}

// waitColumns waits until columns have all events of the usual types.
func (a *account) waitColumns(ctx context.Context) error {
	cut, err := a.cut(ctx)
	if err != nil {
		return err
	}
	return pause.Until(ctx, 10*time.Millisecond, func() (bool, error) {
		for _, eventType := range eventTypes {
			if !a.history.Quick(ctx, query.MatchQuery{Cut: cut, Account: accountNumber, EventType: eventType}) {
				return false, nil
			}
		}
		return true, nil
	})
}

// dropColumns restarts without columns.
func (s *step) dropColumns() error {
	s.earlier += int64(s.a.node.Stats()[0].Events)
	if err := s.a.close(s.base); err != nil {
		return err
	}
	if err := columns.Remove(s.a.historyFile() + duckdb.ColumnsSuffix); err != nil {
		return err
	}
	return s.a.open(s.base)
}

// countUnsaved counts the people for whom a definition holds as the server does: from the
// engine's conditions where it has them, if leaves is set, fields from their columns where
// these are made, and the rest from history and a scan of the profiles.
func (a *account) countUnsaved(ctx context.Context, root *segment.Node, leaves bool) (n uint64, unknown int, err error) {
	if err := a.node.RefreshColumns(ctx, accountNumber); err != nil {
		return 0, 0, err
	}
	known := map[string]*roaring.Bitmap{}
	fields := map[*segment.Node]*view.FieldColumn{}
	var st state
	var everybody *roaring.Bitmap
	err = a.read(ctx, func(v *resolver.View) error {
		st.cut, st.atMs = v.Cut(), max(time.Now().UnixMilli(), v.LogTimeMs())
		whole := true
		var scanned []string
		for _, leaf := range root.Leaves() {
			if m, ok := v.Segments().LeafMembers(leaf.Key(), st.atMs); ok && leaves {
				known[leaf.Key()] = m
				whole = whole && !leaf.Negated()
				continue
			}
			unknown++
			if leaf.Kind != segment.KindAttribute {
				continue
			}
			if column, ok := v.Columns().Of(leaf.Attribute.Field); ok {
				fields[leaf] = column
			} else {
				scanned = append(scanned, leaf.Attribute.Field)
			}
		}
		if unknown > 0 || !whole {
			st.snap = v.Snapshot(scanned...)
			everybody = v.Profiles().All()
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	if st.snap != nil {
		defer st.close()
	}
	if unknown == 0 {
		return combine(root, known, everybody).GetCardinality(), 0, nil
	}
	for leaf, column := range fields {
		b := column.Members(func(value []byte) bool { return leaf.Attribute.MatchValue(value, st.atMs) })
		b.And(everybody)
		known[leaf.Key()] = b
	}
	if err := a.node.WaitHistory(ctx, st.cut); err != nil {
		return 0, 0, err
	}
	b, err := query.Evaluate(ctx, a.cached, query.Evaluation{
		Account: accountNumber, Cut: st.cut, AtMs: st.atMs, Root: root, Profiles: people{st.snap, everybody},
		Known: func(leaf *segment.Node) (*roaring.Bitmap, bool) { m, ok := known[leaf.Key()]; return m, ok },
	})
	if err != nil {
		return 0, 0, err
	}
	return b.GetCardinality(), unknown, nil
}

// people are the profiles of a snapshot, whose universe the view had ready.
type people struct {
	*view.Snapshot
	universe *roaring.Bitmap
}

// Universe implements [query.Profiles].
func (p people) Universe() *roaring.Bitmap { return p.universe }

// combine evaluates the tree over the answers to all its leaves. Complements are
// taken in everybody; without any it is not used.
func combine(n *segment.Node, leaves map[string]*roaring.Bitmap, everybody *roaring.Bitmap) *roaring.Bitmap {
	if n.Kind != segment.KindGroup {
		b := leaves[n.Key()]
		if n.Negated() {
			return roaring.AndNot(everybody, b)
		}
		return b
	}
	var out *roaring.Bitmap
	for _, c := range n.Conditions {
		b := combine(c, leaves, everybody)
		switch {
		case out == nil:
			out = b.Clone()
		case n.Match == segment.MatchAll:
			out.And(b)
		default:
			out.Or(b)
		}
	}
	return out
}
