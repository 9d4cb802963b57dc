package historytest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// Numbers are objects with a number under "v", and what it is as float64: ties
// and near ties at the seventh decimal, many digits, all magnitudes, all ways
// to write a number.
func Numbers() (properties []string, numbers []float64) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range Scale(2_500) {
		sign := float64(1 - 2*rng.IntN(2))
		// A decimal with a 5 at the seventh decimal, and its neighbours.
		whole := rng.Uint64N(uint64(math.Pow10(rng.IntN(13))))
		tie, _ := strconv.ParseFloat(fmt.Sprintf("%d.%06d5", whole, rng.IntN(1_000_000)), 64)
		numbers = append(numbers, sign*tie, sign*math.Nextafter(tie, 0), sign*math.Nextafter(tie, 1e300))
		// Any digits, any place of the point.
		f, _ := strconv.ParseFloat(fmt.Sprintf("%de%d", rng.Uint64()>>rng.IntN(64), rng.IntN(40)-30), 64)
		numbers = append(numbers, sign*f)
		// Any bits.
		if f := math.Float64frombits(rng.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			numbers = append(numbers, f)
		}
	}
	numbers = append(numbers, 0, math.Copysign(0, -1), 1e12, math.Nextafter(1e12, 0), -1e12, math.Nextafter(-1e12, 0),
		5e-324, math.MaxFloat64, 1e9, math.Nextafter(1e9, 0), math.Nextafter(1e9, 1e10), 999999999.9999995, 4503599627.3704965)
	properties = make([]string, len(numbers))
	for i, f := range numbers {
		format := "fgeE"[rng.IntN(4)]
		if format == 'f' && math.Abs(f) < 1e-30 {
			format = 'g'
		}
		properties[i] = `{"v":` + strconv.FormatFloat(f, format, -1, 64) + `}`
	}
	return properties, numbers
}

// Times are objects with a text under "v" that is a time, or nearly one, and that
// text.
func Times() (properties, texts []string) {
	rng := rand.New(rand.NewPCG(13, 14))
	two := func(limit int) string { return fmt.Sprintf("%02d", rng.IntN(limit+2)) }
	for range Scale(6_000) {
		text := fmt.Sprintf("%04d-%s-%s", []int{rng.IntN(10_000), 1900 + rng.IntN(200), rng.IntN(3), 9999}[rng.IntN(4)], two(11), two(30))
		if rng.IntN(8) > 0 {
			text += "T" + two(22) + ":" + two(58) + ":" + two(58)
			if rng.IntN(2) == 0 {
				text += "." + fmt.Sprintf("%010d", rng.Uint64())[:rng.IntN(11)]
			}
			text += []string{"Z", "Z", "+", "-"}[rng.IntN(4)]
			if !strings.HasSuffix(text, "Z") {
				text += two(22) + ":" + two(58)
			}
		}
		if rng.IntN(10) == 0 {
			i := rng.IntN(len(text))
			text = text[:i] + []string{"", "0", " ", "é", "\n", ":", "t"}[rng.IntN(7)] + text[i+rng.IntN(2):]
		}
		texts = append(texts, text)
		properties = append(properties, `{"v":`+string(rawjson.AppendString(nil, text))+`}`)
	}
	return properties, texts
}

// None stands for NULL where a store is asked what it makes of each value.
const None = -math.MaxInt64

// MicrosOfNumbers compares with segment.MicrosOf what a store makes of each number; each
// asks it for the millionths, None where there are none, in the order of the
// events.
func MicrosOfNumbers(t *testing.T, s query.History, each func() []int64) {
	t.Helper()
	properties, numbers := Numbers()
	OneEach(t, s, properties)
	bad := 0
	for i, got := range each() {
		want, ok := segment.MicrosOf(numbers[i])
		if !ok {
			want = None
		}
		if got != want {
			t.Errorf("%s: %d, want %d", properties[i], got, want)
			if bad++; bad == 10 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d numbers", len(numbers))
}

// InstantsOfTexts compares with segment.ParseTime what a store makes of each
// text; each asks it for the Unix milliseconds, None where it is no time.
func InstantsOfTexts(t *testing.T, s query.History, each func() []int64) {
	t.Helper()
	properties, texts := Times()
	OneEach(t, s, properties)
	times := 0
	for i, got := range each() {
		want, ok := segment.ParseTime(texts[i])
		if !ok {
			want = None
		} else {
			times++
		}
		if got != want {
			t.Fatalf("%q: %d, want %d", texts[i], got, want)
		}
	}
	if times < len(texts)/10 || times > len(texts)*9/10 {
		t.Fatalf("%d of %d are times", times, len(texts))
	}
}
