package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/campaigns"
)

// TestKeepLinks: links of earlier messages keep their numbers, and those of a new content continue
// behind them.
func TestKeepLinks(t *testing.T) {
	t.Parallel()
	kept := []string{"https://x.io/one", "https://x.io/two"}
	for name, c := range map[string]struct {
		in, want campaigns.Content
	}{
		"a text": {
			campaigns.Content{Text: "{{muster_click.0}} {{muster_click.1}} {{muster_click.0}} {{first_name}}", Links: []string{"https://x.io/new", "https://x.io/one"}},
			campaigns.Content{Text: "{{muster_click.2}} {{muster_click.0}} {{muster_click.2}} {{first_name}}", Links: []string{"https://x.io/one", "https://x.io/two", "https://x.io/new"}},
		},
		"an e-mail with the same": {
			campaigns.Content{HTML: "{{muster_click.0}}{{muster_click.1}}", Links: kept},
			campaigns.Content{HTML: "{{muster_click.0}}{{muster_click.1}}", Links: kept},
		},
		"none": {
			campaigns.Content{Text: "x"},
			campaigns.Content{Text: "x", Links: kept, NoLinks: true},
		},
		"a push message": { // its link is the last
			campaigns.Content{Text: "x", Links: []string{"https://x.io/one"}},
			campaigns.Content{Text: "x", Links: []string{"https://x.io/one", "https://x.io/two", "https://x.io/one"}},
		},
		"a push message with the last": {
			campaigns.Content{Text: "x", Links: []string{"https://x.io/two"}},
			campaigns.Content{Text: "x", Links: kept},
		},
	} {
		got := c.in
		if err := keepLinks(&got, kept); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got.Text != c.want.Text || got.HTML != c.want.HTML || !slices.Equal(got.Links, c.want.Links) || got.NoLinks != c.want.NoLinks {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	many := campaigns.Content{HTML: "{{muster_click.0}}", Links: []string{"https://x.io/new"}}
	var full []string
	for i := range 1000 {
		full = append(full, "https://x.io/"+strings.Repeat("a", i))
	}
	if err := keepLinks(&many, full); err == nil || !strings.Contains(err.Error(), "Make another campaign of it") {
		t.Errorf("a link beyond the most: %v", err)
	}
	if !slices.Equal(kept, []string{"https://x.io/one", "https://x.io/two"}) {
		t.Errorf("what was kept has changed: %v", kept)
	}
}
