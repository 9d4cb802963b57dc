package paging

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// TestKinds: a cursor is read as its own kind and as no other.
func TestKinds(t *testing.T) {
	place := []byte{0, 1, 2, 3}
	for made := Timeline; made < End; made++ {
		for read := Kind(0); read <= End; read++ {
			got, err := Decode([]byte(Encode(made, place)), read, len(place))
			if want := made == read; want != (err == nil) || want != bytes.Equal(got, place) {
				t.Errorf("a cursor of kind %d read as kind %d: %v, %v", made, read, got, err)
			}
		}
	}
	for _, bad := range []string{"!", "AQ", Encode(Timeline, place[1:]), Encode(Timeline, append(place, 4))} {
		if _, err := Decode([]byte(bad), Timeline, len(place)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if b, err := Decode(nil, Timeline, 4); b != nil || err != nil {
		t.Errorf("without a cursor: %v, %v", b, err)
	}
}

// TestPageByAge: pages of all sizes make up the list, also when the entry that a
// cursor names is gone, and when many are of one age.
func TestPageByAge(t *testing.T) {
	of := func(x *Age) Age { return *x }
	var all []Age
	for i := range 10 {
		all = append(all, Age{int64(i / 3), strconv.Itoa(i)})
	}
	for limit := 1; limit <= 11; limit++ {
		for _, gone := range []bool{false, true} {
			list := slices.Clone(all)
			var got []Age
			for cursor := ""; ; {
				after, err := DecodeAge([]byte(cursor))
				if err != nil {
					t.Fatal(err)
				}
				part, next := PageByAge(list, after, limit, of)
				got = append(got, part...)
				if next == "" {
					break
				}
				if gone {
					last := part[len(part)-1]
					list = slices.DeleteFunc(slices.Clone(list), func(x Age) bool { return x == last })
				}
				cursor = next
			}
			if !slices.Equal(got, all) {
				t.Errorf("pages of %d: %v", limit, got)
			}
		}
	}
	for _, bad := range []string{Encode(ByAge, make([]byte, 7)), Encode(ByOrdinal, make([]byte, 8)), Encode(ByAge, nil)} {
		if _, err := DecodeAge([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestOrdinals: a full page has a next one, which begins behind it.
func TestOrdinals(t *testing.T) {
	for _, x := range []struct {
		page []uint32
		from uint32
	}{{nil, 0}, {[]uint32{4}, 0}, {[]uint32{4, 9}, 10}} {
		if from, err := DecodeOrdinal([]byte(NextOrdinal(x.page, 2))); from != x.from || err != nil {
			t.Errorf("behind %v comes %d, %v", x.page, from, err)
		}
	}
	if _, err := DecodeOrdinal([]byte(Encode(ByOrdinal, make([]byte, 3)))); err == nil {
		t.Error("half a cursor is taken")
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]string{"": "7 true", "1": "1 true", "9": "9 true", "0": "0 false", "10": "0 false", "x": "0 false", "1.5": "0 false", "99999999999": "0 false"} {
		n, ok := Number([]byte(text), 1, 9, 7)
		if got := fmt.Sprint(n, ok); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
