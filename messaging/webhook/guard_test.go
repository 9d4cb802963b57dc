package webhook

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestW1Addresses(t *testing.T) {
	for _, c := range []struct {
		addr           string
		public, openly bool // allowed as it is; allowed with AllowPrivate
	}{
		{"1.1.1.1", true, true},
		{"93.184.216.34", true, true},
		{"172.15.255.255", true, true},
		{"172.32.0.0", true, true},
		{"100.63.255.255", true, true},
		{"100.128.0.0", true, true},
		{"2606:4700::1111", true, true},
		{"::ffff:1.1.1.1", true, true},
		{"64:ff9b::1.1.1.1", true, true},
		{"2002:101:101::1", true, true},
		{"127.0.0.1", false, true},
		{"127.255.255.254", false, true},
		{"10.0.0.1", false, true},
		{"172.16.0.1", false, true},
		{"172.31.255.255", false, true},
		{"192.168.1.1", false, true},
		{"100.64.0.1", false, true},
		{"198.18.0.1", false, true},
		{"::1", false, true},
		{"fd12:3456::1", false, true},
		{"::ffff:127.0.0.1", false, true},
		{"::ffff:10.1.2.3", false, true},
		{"64:ff9b::10.0.0.1", false, true},
		{"64:ff9b::7f00:1", false, true},
		{"2002:a00:1::", false, true},
		{"0.0.0.0", false, false},
		{"0.1.2.3", false, false},
		{"::", false, false},
		{"169.254.169.254", false, false},
		{"::ffff:169.254.169.254", false, false},
		{"64:ff9b::a9fe:a9fe", false, false},
		{"2002:a9fe:a9fe::1", false, false},
		{"169.254.0.1", false, false},
		{"168.63.129.16", false, false},
		{"100.100.100.200", false, false},
		{"192.0.0.192", false, false},
		{"fd00:ec2::254", false, false},
		{"fe80::1", false, false},
		{"fe80::1%eth0", false, false},
		{"224.0.0.1", false, false},
		{"255.255.255.255", false, false},
		{"240.0.0.1", false, false},
		{"ff02::1", false, false},
		{"2001::1", false, false},
		{"2001:db8::1", false, false},
		{"64:ff9b:1::1", false, false},
		{"::127.0.0.1", false, false},
		{"fec0::1", false, false},
		{"5f00::1", false, false},
		{"2002:6440:1::%lo", false, true},
	} {
		addr := netip.MustParseAddr(c.addr)
		for allow, want := range map[bool]bool{false: c.public, true: c.openly} {
			err := Guard{AllowPrivate: allow}.CheckAddr(addr)
			if (err == nil) != want || err != nil && !errors.Is(err, ErrRefused) {
				t.Errorf("%s, AllowPrivate %v: %v", c.addr, allow, err)
			}
			if err := (Guard{AllowPrivate: allow}).control("tcp6", netip.AddrPortFrom(addr, 443).String(), nil); (err == nil) != want {
				t.Errorf("%s at the socket, AllowPrivate %v: %v", c.addr, allow, err)
			}
		}
	}
}

func TestCheckURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://example.com/hook":         "",
		"http://example.com":               "",
		"https://example.com:8443/a?b=c#d": "",
		"https://example.com.:443/":        "",
		"https://8.8.8.8/":                 "",
		"https://[2606:4700::1111]:8080/x": "",
		"":                                 "missing",
		"ftp://example.com/":               "https://",
		"file:///etc/passwd":               "https://",
		"gopher://example.com/":            "https://",
		"example.com/hook":                 "https://",
		"//example.com/hook":               "https://",
		"https:example.com":                "no host",
		"https:///x":                       "no host",
		"https://user:pw@example.com/":     "user name",
		"https://user@example.com/":        "user name",
		"https://example.com:22/":          "port",
		"https://example.com:25/":          "port",
		"https://example.com:99999/":       "port",
		"https://example.com:/":            "port",
		"https://example.com:x/":           "cannot be read",
		"https://exa mple.com/":            "cannot be read",
		"https://example.com/\n":           "cannot be read",
		"https://bücher.example/":          "xn--",
		"http://127.0.0.1/":                "--allow-private-webhooks",
		"http://[::1]/":                    "--allow-private-webhooks",
		"http://[::ffff:10.0.0.1]/":        "--allow-private-webhooks",
		"http://169.254.169.254/latest":    "public address",
		"http://[fe80::1%25eth0]/":         "public address",
		"http://127.1/":                    "four decimal",
		"http://2130706433/":               "four decimal",
		"http://0x7f000001/":               "four decimal",
		"http://0x7f.0.0.0x1/":             "four decimal",
		"http://0177.0.0.1/":               "four decimal",
		"http://localhost:8080/":           "--allow-private-webhooks",
		"http://LOCALHOST./":               "--allow-private-webhooks",
		"http://a.localhost/":              "--allow-private-webhooks",
		"http://metadata.google.internal/": "--allow-private-webhooks",
		"http://printer.local/":            "--allow-private-webhooks",
		"http://intranet/":                 "--allow-private-webhooks",
		"https://example.com/" + strings.Repeat("x", MaxURLBytes): "bytes",
		"https://" + strings.Repeat("a.", 127) + "com/":           "253",
	} {
		err := Guard{}.CheckURL(raw)
		switch {
		case want == "" && err != nil:
			t.Errorf("%.80s: %v", raw, err)
		case want != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "url ")):
			t.Errorf("%.80s: %v, want %q", raw, err, want)
		}
	}
	open := Guard{AllowPrivate: true}
	for raw, ok := range map[string]bool{
		"http://localhost:8080/": true, "http://10.0.0.1/": true, "http://intranet/": true, "http://[::1]:3000/": true,
		"http://169.254.169.254/": false, "http://0.0.0.0:8080/": false, "http://localhost:22/": false, "http://127.1/": false,
	} {
		if err := open.CheckURL(raw); (err == nil) != ok {
			t.Errorf("with AllowPrivate, %s: %v", raw, err)
		}
	}
}

// FuzzCheckURL: what is allowed has a host that is neither a refused address nor a
// spelling of one.
func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://example.com/", "http://[::1]/", "http://127.0.0.1:80/", "http://0x7f.1/", "http://a@b/", "http://[fe80::1%25x]:80/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if (Guard{}).CheckURL(raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			t.Fatalf("allowed %q", raw)
		}
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil && (addr.IsPrivate() || addr.IsLoopback() || !addr.IsGlobalUnicast()) {
			t.Fatalf("allowed %q", raw)
		}
	})
}
