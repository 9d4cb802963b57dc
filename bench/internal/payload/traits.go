package payload

import (
	"fmt"
	"strings"
)

// scoreDigits is the width of the attribute that changes.
const scoreDigits = 6

// traits are the traits of profiles as they are sent where they repeat, all of one
// width: spaces, which JSON allows, fill the place of traits that a profile lacks.
type traits struct {
	same []string // without the attribute that changes
	// other are those of the same profile with that attribute. Its digits are at score.
	other []string
	score int
}

// repeatedTraits are as many texts as profiles can differ by. A score, where there is
// one, comes first, so that it is at one place in all of them.
var repeatedTraits = makeTraits()

func makeTraits() traits {
	var t traits
	const open, score = `","attributes":{`, `"score":1`
	t.score = len(open) + len(score)
	width := 0
	for _, plan := range plans {
		for _, place := range places {
			rest := fmt.Sprintf(`"plan":"%s"},"geo":{"country":"%s","city":"%s"}`, plan, place.country, place.city)
			with := score + zeros[:scoreDigits] + ","
			t.same = append(t.same, open+strings.Repeat(" ", len(with))+rest)
			t.other = append(t.other, open+with+rest)
			width = max(width, len(t.same[len(t.same)-1]))
		}
	}
	for _, list := range [][]string{t.same, t.other} {
		for i := range list {
			list[i] += strings.Repeat(" ", width-len(list[i]))
		}
	}
	return t
}

// put writes the traits of a profile. random decides whether they have changed, and
// to what.
func (t *traits) put(b []byte, profile, random, cutoff uint64) {
	// Neighbours differ in everything.
	i := profile * 0x9e3779b97f4a7c15 >> 32 % uint64(len(t.same))
	if random>>32 >= cutoff {
		copy(b, t.same[i])
		return
	}
	copy(b, t.other[i])
	putDigits(b[t.score:t.score+scoreDigits], random&0xffffffff%1_000_000)
}
