package fold

import (
	"cmp"
	"slices"
)

// Cut takes the span h out of the list.
func Cut(list []Span, h Span) []Span {
	var out []Span
	for _, s := range list {
		if s.From < h.From {
			out = append(out, Span{s.From, min(s.To, h.From)})
		}
		if s.To > h.To {
			out = append(out, Span{max(s.From, h.To), s.To})
		}
	}
	return out
}

// Join makes overlapping spans one; the result is in order.
func Join(list []Span) []Span {
	sortSpans(list)
	var out []Span
	for _, s := range list {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Overlap is where both lists hold.
func Overlap(a, b []Span) []Span {
	var out []Span
	for _, x := range a {
		for _, y := range b {
			if from, to := max(x.From, y.From), min(x.To, y.To); from < to {
				out = append(out, Span{from, to})
			}
		}
	}
	return out
}

func sortSpans(list []Span) {
	slices.SortFunc(list, func(a, b Span) int {
		if a.From != b.From {
			return cmp.Compare(a.From, b.From)
		}
		return cmp.Compare(a.To, b.To)
	})
}
