package tracking

import (
	"bytes"
	"errors"
	"fmt"
	"image/gif"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte("a secret of the server's own")

func keyOf(t testing.TB, account uint64) Key {
	t.Helper()
	k, err := DeriveKey(secret, account)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func keys(t testing.TB) func(uint64) (Key, bool) {
	return func(account uint64) (Key, bool) {
		if account == 666 {
			return Key{}, false
		}
		return keyOf(t, account), true
	}
}

func TestT1TokensLeadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Claims{
			Kind:    Kind(rapid.IntRange(1, 4).Draw(t, "kind")),
			Account: rapid.Uint64Range(1000, 1<<63).Draw(t, "account"),
			Send:    ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "send")),
			Link:    rapid.Uint16().Draw(t, "link"),
		}
		if rapid.Bool().Draw(t, "carries") {
			c.Flow = rapid.StringN(0, -1, MaxNameBytes).Draw(t, "flow")
			c.Step = rapid.StringN(0, -1, MaxNameBytes).Draw(t, "step")
			c.URL = rapid.StringN(0, -1, MaxURLBytes).Draw(t, "url")
		}
		k, _ := DeriveKey(secret, c.Account)
		token := k.Token(c)
		if c.Flow+c.Step+c.URL == "" && len(token) != TokenLen || len(token) > MaxTokenLen {
			t.Fatalf("%d characters", len(token))
		}
		all := func(a uint64) (Key, bool) { k, err := DeriveKey(secret, a); return k, err == nil }
		got, err := Parse(token, all)
		if err != nil || got != c {
			t.Fatalf("%+v, %v", got, err)
		}
		// Any other character at any place is refused.
		at := rapid.IntRange(0, len(token)-1).Draw(t, "at")
		with := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[rapid.IntRange(0, 63).Draw(t, "with")]
		if with != token[at] {
			if got, err := Parse(token[:at]+string(with)+token[at+1:], all); !errors.Is(err, ErrToken) {
				t.Fatalf("changed at %d: %+v, %v", at, got, err)
			}
		}
	})
}

func TestT1OtherTexts(t *testing.T) {
	c := Claims{Kind: Click, Account: 7, Send: ID{1, 2}, Link: 3}
	k := keyOf(t, 7)
	token := k.Token(c)
	other := keyOf(t, 8)
	unknown := Claims{Kind: Open, Account: 666}
	for name, text := range map[string]string{
		"empty": "", "short": token[1:], "cut": k.Token(Claims{Kind: Click, Account: 7, URL: "https://x.example/"})[:TokenLen], "long": token + "A", "padded": token + "=", "line break": token[:20] + "\n" + token[21:],
		"standard alphabet": strings.Repeat("+", TokenLen), "other key": other.Token(c), "unknown account": Key{}.Token(unknown),
		"kind 0": k.Token(Claims{Account: 7}), "kind 6": k.Token(Claims{Kind: 6, Account: 7}), "kind 17": k.Token(Claims{Kind: 17, Account: 7}),
	} {
		if got, err := Parse(text, keys(t)); err != ErrToken || got != (Claims{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := DeriveKey(secret[:15], 1); err == nil {
		t.Error("a key from a short secret")
	}
	if keyOf(t, 1) == keyOf(t, 2) || keyOf(t, 7) != k {
		t.Error("keys are not one per account")
	}
	if s := fmt.Sprintf("%v %#v %s", k, k, k); strings.Contains(s, "0x") || strings.Count(s, "tracking key") != 3 {
		t.Errorf("printed: %s", s)
	}
	if u := k.URL("https://m.example", c); u != "https://m.example/t/"+token {
		t.Error(u)
	}
	// The layout is on the wire and in mailboxes for years.
	fixed := Key{}
	if got, want := fixed.Token(Claims{Kind: Open, Account: 1, Send: ID{0xff}, Link: 2}), "AQAAAAAAAAAB_wAAAAAAAAAAAAAAAAAAAAACBLEivLAqf4KA02FvbJ5IHw"; got != want {
		t.Errorf("token is %s, want %s", got, want)
	}
	carrying := Claims{Kind: Click, Account: 1, Send: ID{2, 1}, Link: 3, Flow: "f1", Step: "mail", URL: "https://x.example/?a=1"}
	if got, want := fixed.Token(carrying), "EgAAAAAAAAABAgEAAAAAAAAAAAAAAAAAAAADAmYxBG1haWxodHRwczovL3guZXhhbXBsZS8_YT0xPenyPPagmVSBocAXjTcMow"; got != want {
		t.Errorf("token is %s, want %s", got, want)
	}
}

// TestT1WhatIsTooLongIsLeftOut: a token never becomes longer than what mail
// programs and servers take, and one of the longer layout has one spelling.
func TestT1WhatIsTooLongIsLeftOut(t *testing.T) {
	k := keyOf(t, 7)
	long := strings.Repeat("x", MaxURLBytes+1)
	c := Claims{Kind: Open, Account: 7, Flow: long, Step: long[:MaxNameBytes], URL: long}
	got, err := Parse(k.Token(c), keys(t))
	if want := (Claims{Kind: Open, Account: 7, Step: c.Step}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	c = Claims{Kind: Open, Account: 7, Flow: long[:MaxNameBytes], Step: long[:MaxNameBytes], URL: long[:MaxURLBytes]}
	if token := k.Token(c); len(token) != MaxTokenLen {
		t.Errorf("%d characters", len(token))
	} else if got, err := Parse(token, keys(t)); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
	seal := func(body ...byte) string {
		raw := append([]byte{byte(Open) | layoutCarrying, 0, 0, 0, 0, 0, 0, 0, 7}, make([]byte, claimsBytes-9)...)
		raw = append(raw, body...)
		sum := k.mac(raw)
		return encoding.EncodeToString(append(raw, sum[:macBytes]...))
	}
	if _, err := Parse(seal(1, 'f', 0), keys(t)); err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"nothing": seal(), "all empty": seal(0, 0), "cut": seal(2, 'f'), "no step": seal(1, 'f'), "long name": seal(append([]byte{101}, long[:102]...)...)} {
		if got, err := Parse(token, keys(t)); err != ErrToken || got != (Claims{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	k := keyOf(f, 7)
	f.Add(k.Token(Claims{Kind: Click, Account: 7}))
	f.Add(k.Token(Claims{Kind: Click, Account: 7, Flow: "f", Step: "s", URL: "https://x.example/"}))
	f.Add(strings.Repeat("A", TokenLen))
	f.Fuzz(func(t *testing.T, token string) {
		c, err := Parse(token, keys(t))
		if err == nil && keyOf(t, c.Account).Token(c) != token {
			t.Fatalf("%q has another spelling", token)
		}
	})
}

func TestPixelIsAnImage(t *testing.T) {
	img, err := gif.Decode(bytes.NewReader(Pixel()))
	if err != nil || img.Bounds().Dx() != 1 || img.Bounds().Dy() != 1 || len(Pixel()) != 43 {
		t.Fatal(err, img)
	}
	if _, _, _, a := img.At(0, 0).RGBA(); a != 0 {
		t.Error("not transparent")
	}
}

func TestJudgeAgent(t *testing.T) {
	for ua, want := range map[string]Agent{
		"": Machine, "Mozilla/5.0": Prefetch,
		"Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)":                                               Proxy,
		"YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html":                                                                Proxy,
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)":                                                Person,
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1": Person,
		"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.1.0":                                                            Person,
		"Microsoft Office/16.0 (Microsoft Outlook 16.0.17328; Pro)":                                                                               Person,
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)":                                                                Machine,
		"curl/8.5.0": Person, "okhttp/4.12.0": Person, "Go-http-client/2.0": Person,
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0 Safari/537.36": Machine,
		"Barracuda Sentinel (EE)":         Machine,
		strings.Repeat("x", 600) + "bot/": Person,
	} {
		if got := JudgeAgent(ua); got != want || got.Suspect() != (want == Prefetch || want == Machine) {
			t.Errorf("%.60q: %v, want %v", ua, got, want)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	var body strings.Builder
	for i := range 20 {
		fmt.Fprintf(&body, "<p>%s <a href=\"https://example.com/%d\">x</a></p>", strings.Repeat("text ", 100), i)
	}
	r, _, err := Rewrite(body.String())
	if err != nil {
		b.Fatal(err)
	}
	k := keyOf(b, 7)
	var dst []byte
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		c := Claims{Account: 7, Send: ID{byte(rng.Uint32())}}
		dst = r.Append(dst[:0], func(dst []byte, s Slot) []byte {
			c.Kind, c.Link = s.Kind, s.Link
			return k.AppendURL(dst, "https://m.example", c)
		})
	}
	b.SetBytes(int64(len(dst)))
}
