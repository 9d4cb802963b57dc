package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver/campaigns"
)

func TestTakeTextLinks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, want string
		links      []string
	}{
		{"Hello", "Hello", nil},
		{"See https://x.io/a.", "See {{muster_click.0}}.", []string{"https://x.io/a"}},
		{"(https://x.io/a) https://x.io/(b)!", "({{muster_click.0}}) {{muster_click.1}}!", []string{"https://x.io/a", "https://x.io/(b)"}},
		{"https://x.io https://y.io https://x.io", "{{muster_click.0}} {{muster_click.1}} {{muster_click.0}}", []string{"https://x.io", "https://y.io"}},
		{"HTTP://X.io/ä?a=1&b=2#c", "{{muster_click.0}}", []string{"HTTP://X.io/ä?a=1&b=2#c"}},
		{`https://x.io/{{profile_id}}/{{first_name | default: "a b"}}?x, {{first_name}}`, "{{muster_click.0}}, {{first_name}}", []string{`https://x.io/{{profile_id}}/{{first_name | default: "a b"}}?x`}},
		// What stands in a tag, and a host that is one, stay.
		{`{{attributes.link | default: "https://x.io"}} https://{{attributes.host}}/x`, `{{attributes.link | default: "https://x.io"}} https://{{attributes.host}}/x`, nil},
		{"myapp://sale x.io http:// {{unsubscribe_url}}", "myapp://sale x.io http:// {{unsubscribe_url}}", nil},
		{"https://" + strings.Repeat("x", tracking.MaxLinkBytes), "https://" + strings.Repeat("x", tracking.MaxLinkBytes), nil},
		{"https://...", "https://...", nil},
		{"“https://x.io/a” „https://x.io/a“ »https://x.io/a« ‘https://x.io/a’", "“{{muster_click.0}}” „{{muster_click.0}}“ »{{muster_click.0}}« ‘{{muster_click.0}}’", []string{"https://x.io/a"}},
		{"https://x.io/a… https://x.io/a—today https://x.io/a。", "{{muster_click.0}}… {{muster_click.0}}—today {{muster_click.0}}。", []string{"https://x.io/a"}},
		{"*https://x.io/a* _https://x.io/a_ https://x.io/a_ *https://x.io/b**", "*{{muster_click.0}}* _{{muster_click.0}}_ {{muster_click.1}} *{{muster_click.2}}*", []string{"https://x.io/a", "https://x.io/a_", "https://x.io/b*"}},
		{"https://x.io/a,https://y.io/b;http://z.io {{first_name}},https://x.io/a", "{{muster_click.0}},{{muster_click.1}};{{muster_click.2}} {{first_name}},{{muster_click.0}}", []string{"https://x.io/a", "https://y.io/b", "http://z.io"}},
		{"https://x.io/r?to=https://y.io/b", "{{muster_click.0}}", []string{"https://x.io/r?to=https://y.io/b"}},
	} {
		got, err := TakeTextLinks(campaigns.Content{Text: c.text})
		if err != nil || got.Text != c.want || !slices.Equal(got.Links, c.links) {
			t.Errorf("%.60q: %.60q %q %v", c.text, got.Text, got.Links, err)
		}
	}
	many := strings.Builder{}
	for i := range tracking.MaxLinks + 1 {
		many.WriteString("https://x.io/" + strings.Repeat("a", i) + " ")
	}
	if _, err := TakeTextLinks(campaigns.Content{Text: many.String()}); err == nil {
		t.Error("any number of links was taken")
	}
}
