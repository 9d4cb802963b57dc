package int128

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// edges are the values around which a carry, a sign or a limit changes.
func edges() []Int128 {
	var out []Int128
	for _, hi := range []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 2, math.MaxInt64 - 1, math.MaxInt64} {
		for _, lo := range []uint64{0, 1, 2, 9, 10, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
			out = append(out, New(hi, lo))
		}
	}
	return out
}

func random(r *rand.Rand) Int128 {
	v := New(int64(r.Uint64()), r.Uint64())
	// All sizes, not only the largest.
	b := v.Big()
	b.Rsh(b, uint(r.IntN(128)))
	out, _ := FromBig(b)
	return out
}

func TestAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := edges()
	for range 400 {
		values = append(values, random(r))
	}
	factors := []int64{0, 1, -1, 2, -2, 10, math.MaxInt64, math.MinInt64, math.MinInt64 + 1}
	for range 20 {
		factors = append(factors, int64(r.Uint64())>>r.IntN(64))
	}
	wrap := func(b *big.Int) Int128 { // modulo 2¹²⁸
		m := new(big.Int).Lsh(big.NewInt(1), 128)
		b = new(big.Int).Mod(b, m)
		if b.Bit(127) == 1 {
			b.Sub(b, m)
		}
		v, ok := FromBig(b)
		if !ok {
			t.Fatalf("%v does not fit", b)
		}
		return v
	}
	for _, a := range values {
		if got := a.Big().String(); got != a.String() {
			t.Fatalf("String %s, want %s", a, got)
		}
		if got, ok := Parse(a.String()); !ok || got != a {
			t.Fatalf("Parse(%s) = %s, %v", a, got, ok)
		}
		if a.Sign() != a.Big().Sign() {
			t.Fatalf("Sign(%s)", a)
		}
		if v, ok := a.Int64(); ok != a.Big().IsInt64() || ok && v != a.Big().Int64() {
			t.Fatalf("Int64(%s)", a)
		}
		if got, want := a.Neg(), wrap(new(big.Int).Neg(a.Big())); got != want {
			t.Fatalf("-%s = %s", a, got)
		}
		for _, b := range values {
			if got, want := a.Add(b), wrap(new(big.Int).Add(a.Big(), b.Big())); got != want {
				t.Fatalf("%s + %s = %s, want %s", a, b, got, want)
			}
			if got, want := a.Sub(b), wrap(new(big.Int).Sub(a.Big(), b.Big())); got != want {
				t.Fatalf("%s - %s = %s, want %s", a, b, got, want)
			}
			if got, want := a.Cmp(b), a.Big().Cmp(b.Big()); got != want {
				t.Fatalf("%s cmp %s = %d, want %d", a, b, got, want)
			}
		}
		for _, n := range factors {
			want, fits := FromBig(new(big.Int).Mul(a.Big(), big.NewInt(n)))
			if got, ok := a.Mul(n); ok != fits || ok && got != want {
				t.Fatalf("%s * %d = %s, %v; want %s, %v", a, n, got, ok, want, fits)
			}
			u := uint64(n)
			want, fits = FromBig(new(big.Int).Mul(a.Big(), new(big.Int).SetUint64(u)))
			if got, ok := a.MulUint64(u); ok != fits || ok && got != want {
				t.Fatalf("%s * %d = %s, %v; want %s, %v", a, u, got, ok, want, fits)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"", "-", "+1", "1.0", "1e3", " 1", "0x1",
		"170141183460469231731687303715884105728",  // 2¹²⁷
		"-170141183460469231731687303715884105729", // −2¹²⁷ − 1
		"1701411834604692317316873037158841057270",
	} {
		if v, ok := Parse(s); ok {
			t.Errorf("Parse(%q) = %s", s, v)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	buf := make([]byte, 0, 64)
	v := New(-5, 77)
	if n := testing.AllocsPerRun(100, func() {
		buf = v.AppendText(buf[:0])
		p, _ := v.Mul(3)
		v = p.Sub(v).Sub(v)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
