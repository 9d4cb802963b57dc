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

// TestIsLoopback: all ways to write that an address is on this machine, and none that is
// elsewhere.
func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "localhost.": true, "a.localhost": true, "localhost.localdomain": true, "localhost6.localdomain6": true,
		"ip6-localhost": true, "ip6-loopback": true, "localhost4": true,
		"127.0.0.1": true, "127.255.0.3": true, "127.0.0.1.": true, "127.1": true, "127.0.1": true, "0x7f.1": true, "0177.0.0.1": true, "2130706433": true, "0x7F000001": true,
		"::1": true, "::": true, "0:0:0:0:0:0:0:1": true, "::ffff:127.0.0.1": true, "::ffff:0.0.0.0": true, "::1%lo": true,
		"0.0.0.0": true, "0": true, "0.0": true,
		"": false, ".": false, "mail.example.com": false, "localhost.example.com": false, "notlocalhost": false, "ip6-localhost.example.com": false,
		"128.0.0.1": false, "192.0.2.1": false, "10.1": false, "127": false, "1.127.0.0.1": false, "127.1.example.com": false, "0x7f": false, "2130706432.1": false,
		"127.0.0.256": false, "127.16777216": false, "4294967296": false, "127.": false, "127..1": false, "1_27.1": false, "0b1111111.1": false, "-127.1": false,
		"::2": false, "2001:db8::1": false, "fe80::1": false,
	} {
		if IsLoopback(host) != want {
			t.Errorf("%q is on this machine: %t, want %t", host, !want, want)
		}
	}
}
