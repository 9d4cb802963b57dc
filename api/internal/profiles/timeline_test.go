package profiles

import (
	"testing"

	"github.com/musterhq/muster/api/internal/paging"
)

// TestTimelinePlaces: behind each place of a timeline come exactly those before it,
// whatever source they are of.
func TestTimelinePlaces(t *testing.T) {
	places := []timelinePlace{
		{1, phaseRecord, 9, 0, 9}, {2, phaseMerge, 0, 0, 3}, {2, phaseMerge, 0, 0, 4}, {2, phaseRecord, 5, 0, 0}, {2, phaseRecord, 5, 0, 1}, {2, phaseRecord, 5, 1, 1},
		{2, phaseRecord, 5, 1, 2}, {2, phaseRecord, 6, 0, 0}, {2, phaseRecord, 6, 1, 1}, {2, phaseStep, 0, 1, 0}, {2, phaseStep, 0, 1, 1}, {2, phaseStep, 3, 1, 0},
		{2, phaseEnd, 5, 0, 2}, {2, phaseEnd, 6, 0, 1}, {3, phaseRecord, 1, 1, 1},
	}
	for i, p := range places {
		for j, x := range places {
			if got := x.compare(p); got < 0 != (j < i) || got > 0 != (j > i) {
				t.Errorf("%v and %v: %d", x, p, got)
			}
			isBefore := false
			switch {
			case x.phase == phaseRecord && x.b == 1:
				k := p.transition()
				isBefore = x.atMs < k.AtMs || x.atMs == k.AtMs && (x.a < k.Key.Offset || x.a == k.Key.Offset && x.c < k.Key.Seq)
			case x.phase == phaseRecord || x.phase == phaseEnd:
				k, late := p.event(), x.phase == phaseEnd
				isBefore = x.atMs < k.TimeMs || x.atMs == k.TimeMs && (!late && k.Late || late == k.Late && (x.a < k.Offset || x.a == k.Offset && x.c < k.Index))
			default:
				continue
			}
			if isBefore != (j < i) {
				t.Errorf("%v is before %v: %v", x, p, isBefore)
			}
		}
		if b, err := paging.Decode([]byte(p.encode()), paging.History, timelinePlaceBytes); err != nil || len(b) != timelinePlaceBytes {
			t.Errorf("%v: %v, %v", p, b, err)
		}
	}
}
