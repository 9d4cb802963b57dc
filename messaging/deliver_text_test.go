package messaging

import "testing"

// An e-mail address is no sender of a text; what else a provider may take goes to it.
func TestTextSender(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"news@muster.local": "", "": "", "Shop": "Shop", "+15005550006": "+15005550006", "MG0123456789abcdef0123456789abcdef": "MG0123456789abcdef0123456789abcdef"} {
		if got := TextSender(given); got != want {
			t.Errorf("%q: %q", given, got)
		}
	}
}
