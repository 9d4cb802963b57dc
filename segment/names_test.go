package segment

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSnakeCase(t *testing.T) {
	for _, c := range []struct{ name, key string }{
		{"Item Purchased!", "item_purchased"},
		{"itemPurchased", "item_purchased"},
		{"item_purchased", "item_purchased"},
		{"ITEM-PURCHASED", "item_purchased"},
		{"HTTPServer2Go", "http_server2_go"},
		{"parseURL", "parse_url"},
		{"URL", "url"},
		{"v2", "v2"},
		{"  __Sign--Up__  ", "sign_up"},
		{"a.b/c:d", "a_b_c_d"},
		{"Customer's Order", "customers_order"},
		{"l’été", "lete"},
		{"Größe gewählt", "grosse_gewahlt"},
		{"Ærøskøbing", "aeroskobing"},
		{"ÆRØSKØBING", "aeroskobing"},
		{"Łódź", "lodz"},
		{"ＦＵＬＬ width", "full_width"},
		{"CO₂ level", "co2_level"},
		{"buy 🎉 now", "buy_now"},
		{"2FA enabled", "2_fa_enabled"},
		{"", ""},
		{"!?", ""},
		{"___", ""},
		{"покупка", ""},
		{"Buy 日本", ""},
		{"'", ""},
		{"\xff", ""},
		{strings.Repeat("a", 128), strings.Repeat("a", 128)},
		{strings.Repeat("a", 129), ""},
		{strings.Repeat("a ", 64), strings.Repeat("a_", 63) + "a"},
		{strings.Repeat("a ", 70), ""},
	} {
		if key, ok := SnakeCase(c.name); key != c.key || ok != (c.key != "") {
			t.Errorf("SnakeCase(%q) = %q, %v; want %q", c.name, key, ok, c.key)
		}
	}
}

func TestEventTypes(t *testing.T) {
	grammar := regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("ab09__A-é\n")), 0, 12, -1).Draw(t, "s")
		want := grammar.MatchString(s)
		if ValidEventType(s) != want || ValidEventType([]byte(s)) != want {
			t.Fatalf("ValidEventType(%q) is %v", s, !want)
		}
		if key, ok := SnakeCase(s); ok && !grammar.MatchString(key) {
			t.Fatalf("SnakeCase(%q) = %q", s, key)
		} else if want && key != s {
			t.Fatalf("the key %q becomes %q", s, key)
		}
	})
	for _, s := range []string{strings.Repeat("a", 128), strings.Repeat("a", 129)} {
		if ValidEventType(s) != (len(s) <= 128) {
			t.Errorf("%d bytes", len(s))
		}
	}
}
