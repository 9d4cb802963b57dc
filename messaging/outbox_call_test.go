package messaging

import "testing"

// A value is data in a call's address: it neither ends the path nor leads to
// another one.
func TestCallURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, value, want string }{
		{"http://host.example/p/{{s}}/done?n=1", "a", "http://host.example/p/a/done?n=1"},
		{"http://host.example/p/{{s}}/done?n=1", "a#b", "http://host.example/p/a%23b/done?n=1"},
		{"http://host.example/p/{{s}}/done?n=1", "a?b", "http://host.example/p/a%3Fb/done?n=1"},
		{"http://host.example/p/{{s}}/done?n=1", "../../admin", "http://host.example/p/..%2F..%2Fadmin/done?n=1"},
		{"http://host.example/p/{{s}}/done?n=1", "%2e%2e", "http://host.example/p/%252e%252e/done?n=1"},
		{"http://host.example/p/{{s}}/done?n=1", "..", ""},
		{"http://host.example/p/.{{s}}?n=1", ".", ""},
		{"http://host.example/p/v{{s}}?n={{s}}", "..", "http://host.example/p/v..?n=.."},
	} {
		got, err := callURL(c.target, func([]string) (string, bool) { return c.value, true })
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s with %q: %q, %v; want %q", c.target, c.value, got, err, c.want)
		}
	}
}
