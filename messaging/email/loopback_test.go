package email

import (
	"strings"
	"testing"
	"time"
)

// TestOneClickWithoutTLSIsForThisMachineOnly: everywhere else a link that
// unsubscribes with one request goes over https.
func TestOneClickWithoutTLSIsForThisMachineOnly(t *testing.T) {
	for url, fine := range map[string]bool{
		"https://example.com/u": true, "http://127.0.0.1:8080/u": true, "http://[::1]/u": true, "http://localhost:80/u": true, "http://mail.localhost/u": true,
		"http://example.com/u": false, "http://127.0.0.1.example.com/u": false, "http://localhost.example.com/u": false, "http://10.0.0.1/u": false, "ftp://localhost/u": false, "http:///u": false,
	} {
		m := &Message{ID: "a@x.io", Date: time.Unix(1, 0), From: Address{Addr: "a@x.io"}, To: Address{Addr: "b@x.io"}, Text: "t", Unsubscribe: Unsubscribe{URL: url}}
		b, err := m.Build()
		if (err == nil) != fine || fine && !strings.Contains(string(b), "List-Unsubscribe-Post: List-Unsubscribe=One-Click") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
