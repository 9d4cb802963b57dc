package weborigin

import "testing"

func TestAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"*": "*", "https://Shop.example": "https://shop.example", "https://*.shop.example:8443": "https://*.shop.example:8443", "http://localhost:3000": "http://localhost:3000",
		"": "", "shop.example": "", "ftp://shop.example": "", "https://*": "", "https://a.*.example": "", "https://shop.example/": "", "https://a,b": "", "https://a;script-src": "", "https://u@shop.example": "",
	} {
		if got, ok := Parse(text); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, %v", text, got, ok)
		}
	}
	list := []string{"https://shop.example", "https://*.eu.example"}
	for origin, want := range map[string]bool{"https://shop.example": true, "https://SHOP.example": true, "https://a.b.eu.example": true, "https://eu.example": false, "http://a.eu.example": false, "https://eviltld": false, "null": false} {
		if Allowed(list, origin) != want {
			t.Errorf("%q is allowed: %v", origin, !want)
		}
	}
	if !Allowed([]string{Any}, "null") || Allowed(nil, "https://shop.example") {
		t.Error("any and none")
	}
}
