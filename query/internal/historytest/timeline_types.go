package historytest

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/query"
)

// TimelineOfTypes pages through timelines of some types, with types that come last
// within a millisecond: each event is found once, in that order.
func TimelineOfTypes(t *testing.T, open Open) {
	s := open(t)
	rng := rand.New(rand.NewPCG(18, 19))
	names := []string{"a", "b's", "late", "later", "email_opened"}
	type row struct {
		key  query.TimelineKey
		typ  string
		sent bool
		// idempotency is the key
		idempotency string
	}
	var all []row
	b := &query.Batch{To: 500}
	for o := range b.To {
		for i := range rng.IntN(3) {
			r := row{query.TimelineKey{TimeMs: 1000 + rng.Int64N(20), Offset: o, Index: uint32(i)}, names[rng.IntN(len(names))], false, ""}
			key := []byte(nil)
			if rng.IntN(2) == 0 {
				r.sent = r.typ == "email_opened"
				r.idempotency = "k"
				key = query.AppendSentKey(nil, []byte(r.typ), []byte("k"))
			}
			all = append(all, r)
			b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, o), append(b.Index, uint32(i))
			b.Ordinal, b.TimeMs = append(b.Ordinal, 7), append(b.TimeMs, r.key.TimeMs)
			b.EventType.Append([]byte(r.typ))
			b.Properties.Append(nil)
			b.IdempotencyKey.Append(key)
		}
	}
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		types, except, late []string
		recorded            bool
	}{
		{nil, nil, nil, false}, {nil, nil, names[2:4], false}, {names[1:3], nil, names[2:4], false}, {nil, names[1:3], names[2:4], false}, {nil, names[:2], names[3:4], false},
		{[]string{}, nil, names[2:4], false}, {names[:3], names[:1], names[2:4], false},
		{names[3:], nil, nil, true}, {nil, names[3:], names[2:4], true}, {nil, names[3:], nil, false}, {nil, nil, nil, true}, {[]string{}, nil, nil, true},
	} {
		q := query.TimelineQuery{Cut: query.Cut{UpTo: 400}, Account: 1, Ordinals: []uint32{7}, Types: x.types, Except: x.except, Recorded: x.recorded, Late: x.late, Limit: 9}
		var want, got []query.TimelineKey
		for _, r := range all {
			if r.key.Offset < q.Cut.UpTo && q.Keeps(r.typ, r.sent) {
				r.key.Late = slices.Contains(x.late, r.typ)
				want = append(want, r.key)
			}
		}
		late := func(k query.TimelineKey) int {
			if k.Late {
				return 1
			}
			return 0
		}
		slices.SortFunc(want, func(a, b query.TimelineKey) int {
			return -cmp.Or(cmp.Compare(a.TimeMs, b.TimeMs), cmp.Compare(late(a), late(b)), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Index, b.Index))
		})
		if len(want) < 50 && (x.types == nil || len(x.types) > 0) {
			t.Fatalf("%v: %d events", x, len(want))
		}
		for len(got) <= len(want) {
			page, err := s.Timeline(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				got = append(got, e.Key)
				if i := slices.IndexFunc(all, func(r row) bool { return r.key.Offset == e.Key.Offset && r.key.Index == e.Key.Index }); e.Sent != all[i].sent || e.IdempotencyKey != all[i].idempotency {
					t.Errorf("%+v of %+v", e, all[i])
				}
			}
			q.Before = &got[len(got)-1]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v: got %v\nwant %v", x, got, want)
		}
	}
}
