package segment

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/testlevel"
)

func rounds(usual int) int {
	if testlevel.Long() {
		return usual * 50
	}
	return testlevel.Count(usual/4, usual)
}

// hardFloats draws floats where rounding is decided late.
func hardFloats(r *rand.Rand) float64 {
	sign := float64(1 - 2*r.IntN(2))
	switch r.IntN(7) {
	case 0: // any bits
		return math.Float64frombits(r.Uint64())
	case 1: // ties at the seventh decimal, as decimals
		f, _ := strconv.ParseFloat(strconv.Itoa(r.IntN(1<<r.IntN(31)))+"."+
			strconv.Itoa(1_000_000 + r.IntN(1_000_000))[1:]+"5", 64)
		return sign * f
	case 2: // six decimals and a neighbour
		f := float64(r.Int64N(1<<r.IntN(62)+1)) / 1e6
		return sign * math.Nextafter(f, f+float64(r.IntN(3)-1))
	case 3: // halves of the last bit
		return sign * math.Ldexp(float64(r.Int64N(1<<53)), -r.IntN(80))
	case 4: // integers
		return sign * float64(r.Int64N(1<<r.IntN(62)+1))
	case 5: // about the limit
		return sign * (1e12 + float64(r.IntN(40)-20)*0.0001220703125)
	}
	return sign * float64(r.IntN(1000)) / 100
}

// TestS1MicrosOf compares the rounding with one through math/big.
func TestS1MicrosOf(t *testing.T) {
	check := func(f float64) {
		t.Helper()
		got, ok := MicrosOf(f)
		if math.IsNaN(f) || math.Abs(f) >= 1e12 {
			if ok {
				t.Fatalf("%v is not left out", f)
			}
			return
		}
		want := naiveMicros(f)
		if !ok || new(big.Rat).SetFrac64(got, MicrosPerUnit).Cmp(want) != 0 {
			t.Fatalf("%v: %d, %v; want %s", f, got, ok, want.FloatString(6))
		}
		// The fast paths must not hide the slow one from the test.
		if slow := microsSlow(f); slow != got {
			t.Fatalf("%v: slowly %d, fast %d", f, slow, got)
		}
		// The magnitude is the same question before rounding and after.
		if limit := big.NewRat(1e12, 1); want.Cmp(limit) >= 0 || want.Cmp(limit.Neg(limit)) <= 0 {
			t.Fatalf("%v rounds to %s", f, want.FloatString(6))
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range rounds(200_000) {
		check(hardFloats(r))
	}
	for _, f := range []float64{
		0, math.Copysign(0, -1), 5e-7, 1.5e-6, 2.5e-6, -5e-7, 1e-7, 5e-324, 0.1, 0.3,
		math.Nextafter(1e12, 0), 1e12, math.Nextafter(1e12, 2e12), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64,
	} {
		check(f)
		check(-f)
	}
}

// TestS1Compare compares exact comparisons with ratios of math/big.
func TestS1Compare(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	small := func() Int128 {
		v := int128.From(int64(r.IntN(7) - 3))
		if r.IntN(2) == 0 {
			v, _ = v.Mul(MicrosPerUnit)
		}
		if r.IntN(10) == 0 {
			v, _ = int128.From(1_000_000_000_000_000_000).Mul(int64(r.IntN(2_000_001) - 1_000_000))
		}
		return v
	}
	for range rounds(50_000) {
		c := Compare{Op: countOps[r.IntN(len(countOps))]}
		c.Micros = []Int128{small(), small()}
		if c.Op == OpBetween && c.Micros[0].Cmp(c.Micros[1]) > 0 {
			c.Micros[0], c.Micros[1] = c.Micros[1], c.Micros[0]
		}
		if c.Op != OpBetween && c.Op != OpIn && c.Op != OpNotIn {
			c.Micros = c.Micros[:1]
		}
		sum, n := small(), uint64(1+r.IntN(4))
		if r.IntN(10) == 0 {
			n = r.Uint64() | 1
		}
		divisor := new(big.Int).Mul(new(big.Int).SetUint64(n), big.NewInt(MicrosPerUnit))
		if got, want := c.HoldsRatio(sum, n), c.naive(new(big.Rat).SetFrac(sum.Big(), divisor)); got != want {
			t.Fatalf("%s / %d %s %v: %v", sum, n, c.Op, c.Micros, got)
		}
		if got, want := c.Holds(sum), c.naive(new(big.Rat).SetFrac(sum.Big(), big.NewInt(MicrosPerUnit))); got != want {
			t.Fatalf("%s %s %v: %v", sum, c.Op, c.Micros, got)
		}
	}
}

// TestS1ParseTime compares the time grammar with package time's.
func TestS1ParseTime(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	accepted := 0
	check := func(text string) {
		t.Helper()
		got, ok := ParseTime(text)
		want, wantOK := naiveTime(text)
		if ok != wantOK || ok && got != want {
			t.Fatalf("%q: %d, %v; want %d, %v", text, got, ok, want, wantOK)
		}
		if ok {
			accepted++
			if got >= minTimeMs && got <= maxTimeMs {
				written := string(AppendTime(nil, got))
				if again, ok := ParseTime(written); !ok || again != got || len(written) != len("2006-01-02T15:04:05.000Z") {
					t.Fatalf("%q is written %s", text, written)
				}
			}
		}
	}
	const bases = "0123456789TZ:.+-tz "
	for range rounds(100_000) {
		text := string(AppendTime(nil, minTimeMs+r.Int64N(maxTimeMs-minTimeMs)))
		switch r.IntN(4) {
		case 0:
			text = text[:10]
		case 1:
			text = text[:19] + []string{"Z", ".1Z", ".123456789Z", "+01:30", ".5-23:59", "+24:00", ".1234567890Z"}[r.IntN(7)]
		}
		check(text)
		for range r.IntN(3) {
			i := r.IntN(len(text))
			switch r.IntN(3) {
			case 0:
				text = text[:i] + string(bases[r.IntN(len(bases))]) + text[i+1:]
			case 1:
				text = text[:i] + text[i+1:]
			case 2:
				text = text[:i] + string(bases[r.IntN(len(bases))]) + text[i:]
			}
			check(text)
		}
	}
	for _, text := range []string{"", "2024", "2024-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "9999-12-31T23:59:59.999999999Z"} {
		check(text)
	}
	if accepted < rounds(100_000)/2 {
		t.Errorf("only %d times were accepted: the test says little", accepted)
	}
}

func TestWindowComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range rounds(100_000) {
		w := 1 + r.Int64N(1<<r.IntN(42))
		if w > maxLastDays*msPerDay {
			continue
		}
		if got := windowOf(daysOf(w)); got != w {
			t.Fatalf("%d ms are %v days are %d ms", w, daysOf(w), got)
		}
	}
	for _, c := range []struct {
		days float64
		ms   int64
	}{{1, 86_400_000}, {0.5, 43_200_000}, {36_500, 3_153_600_000_000}, {1.0 / 3, 28_800_000}, {1e-300, 0}, {0.1, 8_640_000}} {
		if got := windowOf(c.days); got != c.ms {
			t.Errorf("%v days are %d ms, want %d", c.days, got, c.ms)
		}
	}
}

func TestThresholdComesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range rounds(50_000) {
		v, _ := int128.FromBig(new(big.Int).Rsh(int128.New(r.Int64N(54210), r.Uint64()).Big(), uint(r.IntN(81))))
		if r.IntN(2) == 0 {
			v = v.Neg()
		}
		limit, _ := int128.From(maxThreshold).Mul(MicrosPerUnit)
		text := string(appendThreshold(nil, v))
		got, reason := parseThreshold(text)
		if v.Cmp(limit) > 0 || v.Neg().Cmp(limit) > 0 {
			if reason == "" {
				t.Fatalf("%s is accepted", text)
			}
			continue
		}
		if reason != "" || got != v {
			t.Fatalf("%s is written %s and read %s (%s)", v, text, got, reason)
		}
		exact, _ := new(big.Rat).SetString(text)
		if exact.Cmp(new(big.Rat).SetFrac(v.Big(), big.NewInt(MicrosPerUnit))) != 0 {
			t.Fatalf("%s is written %s", v, text)
		}
	}
}

func TestLimits(t *testing.T) {
	leaf := `{"kind":"list","list_id":"l"}`
	many := func(n int, part string) string { return strings.TrimSuffix(strings.Repeat(part+",", n), ",") }
	group := func(n int) string { return `{"match":"any","conditions":[` + many(n, leaf) + `]}` }
	nested := func(n int) string {
		return strings.Repeat(`{"match":"all","conditions":[`, n-1) + leaf + strings.Repeat(`]}`, n-1)
	}
	in := func(n int) string {
		return `{"kind":"attribute","field":"geo.x","op":"in","value":[` + many(n, "1") + `]}`
	}
	where := func(n int) string {
		return `{"kind":"activity","event":"e","where":[` + many(n, `{"property":"a","op":"exists"}`) + `]}`
	}
	text := func(n int) string {
		return `{"kind":"attribute","field":"geo.x","op":"=","value":"` + strings.Repeat("ü", n/2) + `"}`
	}
	email := func(n int) string { // Ⱥ has two bytes, ⱥ three
		return `{"kind":"attribute","field":"email","op":"=","value":"` + strings.Repeat("Ⱥ", n) + `"}`
	}
	event := func(n int) string { return `{"kind":"activity","event":"` + strings.Repeat("e", n) + `"}` }
	id := func(n int) string { return `{"kind":"list","list_id":"` + strings.Repeat("e", n) + `"}` }
	path := func(n int) string {
		return `{"kind":"attribute","field":"geo.` + strings.Repeat("e", n-4) + `","op":"exists"}`
	}
	keys := func(n int) string {
		return `{"kind":"attribute","field":"geo` + strings.Repeat(".e", n-1) + `","op":"exists"}`
	}
	for _, c := range []struct {
		name    string
		most    string // just accepted
		over    string
		message string
	}{
		{"conditions", group(499), group(500), "definition must have at most 500 conditions, groups included; split it into segments that refer to each other"},
		{"ten thousand conditions", leaf, group(10_000), "definition must have at most 262144 bytes and 500 conditions, it has 300030 bytes; split it into segments that refer to each other"},
		{"conditions across groups", leaf, `{"match":"any","conditions":[` + many(6, group(100)) + `]}`, "definition must have at most 500 conditions, groups included; split it into segments that refer to each other"},
		{"depth", nested(16), nested(17), strings.Repeat("conditions[0].", 15) + "conditions[0] must not be nested deeper than 16 levels"},
		{"deep", leaf, strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000), "definition must be valid JSON: invalid character '[' exceeded max depth"},
		{"in", in(1000), in(1001), "value must have at most 1000 values"},
		{"where", where(20), where(21), "where must have at most 20 filters"},
		{"text", text(1024), text(1026), "value must have at most 1024 bytes, it has 1026"},
		{"normal form", email(341), email(342), "value must have at most 1024 bytes in lower case, it has 1026"},
		{"event", event(128), event(129), `event must be a snake_case key of at most 128 bytes, such as "item_purchased"`},
		{"id", id(128), id(129), "list_id must have at most 128 bytes, it has 129"},
		{"path", path(512), path(513), "field must have at most 512 bytes, it has 513"},
		{"keys", keys(16), keys(17), "field must have at most 16 keys"},
		{"bytes", leaf + strings.Repeat(" ", 256<<10-len(leaf)), leaf + strings.Repeat(" ", 256<<10), "definition must have at most 262144 bytes and 500 conditions, it has 262173 bytes; split it into segments that refer to each other"},
		{"UTF-8", leaf, "{\"kind\":\"\xff\"}", "definition must be valid UTF-8"},
	} {
		if _, err := Parse([]byte(c.most), Limits{}); err != nil {
			t.Errorf("%s: at the limit: %v", c.name, err)
		}
		_, err := Parse([]byte(c.over), Limits{})
		if d := (*DefinitionError)(nil); !errors.As(err, &d) || err.Error() != c.message {
			t.Errorf("%s: over the limit: %v\nwant %s", c.name, err, c.message)
		}
	}
	if _, err := Parse([]byte(group(3)), Limits{Conditions: 4}); err != nil {
		t.Errorf("own limit: %v", err)
	}
	if _, err := Parse([]byte(group(4)), Limits{Conditions: 4}); err == nil {
		t.Error("own limit is not kept")
	}
}

func TestHoldsForNone(t *testing.T) {
	for _, fn := range append([]Fn{""}, fns...) {
		for _, op := range countOps {
			for _, value := range []string{"0", "1"} {
				if op == OpIn || op == OpNotIn {
					value = "[" + value + "]"
				}
				if op == OpBetween {
					value = "[" + value + ",1]"
				}
				part := `"count":{`
				if fn != "" {
					part = `"aggregate":{"fn":"` + string(fn) + `","property":"v",`
				}
				n := mustParse(t, `{"kind":"activity","event":"e",`+part+`"op":"`+string(op)+`","value":`+value+`}}`)
				if got, want := n.Activity.HoldsForNone(), n.Naive(&NaiveProfile{}, 0, nil); got != want {
					t.Errorf("%s %s %s: %v", fn, op, value, got)
				}
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	object := []byte(`{"a":{"b":"some \"text\" here","n":-12.5,"tags":["x","y"],"when":"2024-03-15T12:00:00.5+02:00"}}`)
	var predicates []*Predicate
	for _, filter := range []string{
		`{"property":"a.b","op":"contains","value":"text"}`,
		`{"property":"a.n","op":"between","value":[-13,5]}`,
		`{"property":"a.tags","op":"in","value":["z","y"]}`,
		`{"property":"a.when","op":"in_last_days","value":30}`,
	} {
		predicates = append(predicates, &mustParse(t, `{"kind":"activity","event":"e","where":[`+filter+`]}`).Activity.Where[0])
	}
	email := mustParse(t, `{"kind":"attribute","field":"email","op":"ends_with","value":"@x.de"}`).Attribute
	created := mustParse(t, `{"kind":"attribute","field":"created_at","op":">","value":"2024-01-01"}`).Attribute
	status := mustParse(t, `{"kind":"attribute","field":"status","op":"in","value":["Engaged","Pending"]}`).Attribute
	seen := mustParse(t, `{"kind":"attribute","field":"last_event_at","op":">","value":"2024-01-01"}`).Attribute
	devices := mustParse(t, `{"kind":"attribute","field":"push_devices","op":"=","value":"apns"}`).Attribute
	facts := &Facts{
		Fields: Fields{Emails: [][]byte{[]byte("Änne@x.de")}, CreatedAtMs: 1_710_504_000_000, LastEventMs: 1_710_504_000_000, HasEvent: true,
			Engagement: Engagement{Opened: 1, LastOpenMs: 1}, PushDevices: []string{"fcm", "apns"}},
		Consents: []ConsentFact{{Channel: "sms"}, {Channel: "email", Status: StatusSubscribed}},
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, p := range predicates {
			if !p.Match(object, 1_710_504_000_000) {
				t.Fatal(p.Path)
			}
		}
		for _, a := range []*Attribute{email, created, status, seen, devices} {
			if !a.Match(facts, 2) {
				t.Fatal(a.Field)
			}
		}
		MicrosOf(12345.6789125)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMicrosOf(b *testing.B) {
	for _, f := range []float64{50, 19.99, 12345.6789125} {
		b.Run(strconv.FormatFloat(f, 'g', -1, 64), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				MicrosOf(f)
			}
		})
	}
}

func BenchmarkPredicateMatch(b *testing.B) {
	p := &mustParse(b, `{"kind":"activity","event":"e","where":[{"property":"sku","op":"=","value":"B-17"}]}`).Activity.Where[0]
	object := []byte(`{"value":19.99,"currency":"EUR","product_id":"85123A","quantity":6,"sku":"B-17"}`)
	b.ReportAllocs()
	for b.Loop() {
		p.Match(object, 0)
	}
}
