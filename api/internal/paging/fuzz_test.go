package paging

import "testing"

// FuzzDecode: whatever stands where a cursor should, it is refused or one place,
// and a place that is written again is the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "A", "AAAA", "AQAAAAAAAAAA", "_____w", "%", "AQAAAAAAAAAAbHN0XzAw"} {
		f.Add([]byte(s), byte(1), uint8(0))
	}
	f.Fuzz(func(t *testing.T, cursor []byte, kind byte, length uint8) {
		if place, err := Decode(cursor, Kind(kind), int(length)); err == nil && place != nil {
			again, err := Decode([]byte(Encode(Kind(kind), place)), Kind(kind), int(length))
			if err != nil || string(again) != string(place) {
				t.Errorf("%q: %q, then %q, %v", cursor, place, again, err)
			}
		}
		_, _ = DecodeOrdinal(cursor)
		if age, err := DecodeAge(cursor); err == nil && age != nil {
			list := []Age{{-1, "a"}, {0, ""}, {0, "x"}, {1 << 40, "y"}}
			if part, _ := PageByAge(list, age, 2, func(x *Age) Age { return *x }); len(part) > 2 {
				t.Errorf("%q: %v", cursor, part)
			}
		}
		if n, ok := Number(cursor, 1, 1000, 100); ok && (n < 1 || n > 1000) {
			t.Errorf("%q: %d", cursor, n)
		}
	})
}
