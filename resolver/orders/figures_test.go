package orders

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/must"
)

// TestTopSources: of each currency those with the most revenue are kept, and amounts of two
// currencies are not compared.
func TestTopSources(t *testing.T) {
	var list []*SourceFigures
	for i, currency := range []string{"EUR", "USD", "EUR", "USD", "EUR", "EUR"} {
		list = append(list, &SourceFigures{Source{Campaign: fmt.Sprint(5 - i)}, currency, Figures{Total: Amount(10 * (i + 1)), Refunded: Amount(i / 5 * 50)}})
	}
	got := TopSources(list, 2)
	SortSources(got)
	var names []string
	for _, f := range got {
		names = append(names, f.Campaign+f.Currency+f.Revenue().String())
	}
	if want := []string{"1EUR0.005", "2USD0.004", "3EUR0.003", "4USD0.002"}; !slices.Equal(names, want) {
		t.Fatalf("%q", names)
	}
	if TopSources(nil, 2) != nil {
		t.Fatal("something of nothing")
	}
}

// BenchmarkSources reads the figures of a campaign, of a flow, and the top of an account that has
// as many sources as it may.
func BenchmarkSources(b *testing.B) {
	s := New(1, nil, nil, nil)
	for i := range maxSources {
		x := SourceFigures{Source{Channel: "email", Campaign: fmt.Sprintf("cmp_%032d", i)}, "EUR", Figures{Orders: 1, Total: Amount(i)}}
		if _, err := s.sources.Load(sourceName(&x.Source, x.Currency), must.JSON(x)); err != nil {
			b.Fatal(err)
		}
	}
	for name, read := range map[string]func(){
		"campaign": func() { s.OfCampaign("cmp_7") },
		"choose":   func() { s.Sources(func(*Source) bool { return true }) },
		"top":      func() { TopSources(s.Sources(func(*Source) bool { return true }), 200) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				read()
			}
		})
	}
}
