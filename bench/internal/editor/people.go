package editor

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

var (
	firstNames = strings.Fields("Ada Anna Arthur Astrid Carla Chloe Daan Elena Emil Eva Felix Greta Hugo Ines Ivan Jakub Jonas Kofi Lena Lucia Marta Mateo Mei Milan Nils Noor Olivia Oskar Pablo Pia Quentin Rosa Sanne Sofia Tariq Ulla Viktor Wanda Yara Zoe")
	lastNames  = strings.Fields("Adler Bakker Bauer Clarke Dubois Eriksen Fischer Garcia Haddad Huber Hughes Ivanov Janssen Keller Kowalska Kruger Leroy Lindqvist Maier Mensah Moreau Muller Nowak Okafor Olsen Peeters Quist Romero Rossi Schmidt Schulz Silva Tanaka Urban Visser Wagner Weber Xu Yilmaz Zimmer")
	countries  = []string{"DE", "FR", "NL", "GB", "ES", "SE", "AT", "PL"}
	plans      = []string{"free", "basic", "plus", "pro"}
	types      = []string{"page_viewed", "page_viewed", "page_viewed", "page_viewed", "item_viewed", "item_viewed", "item_viewed", "cart_added", "searched", "purchased"}
)

// person is the n-th profile; it follows from n alone.
type person struct {
	n           int
	first, last string
}

func newPerson(n int) person {
	return person{n, firstNames[n%len(firstNames)], lastNames[n/len(firstNames)%len(lastNames)]}
}

func (p person) email() string {
	return fmt.Sprintf("%s.%s.%d@mail%d.example", strings.ToLower(p.first), strings.ToLower(p.last), p.n, p.n%7)
}

func (p person) externalID() string { return fmt.Sprintf("c-%08d", p.n) }

// appendFirst appends the first event of a person, which has everything of them.
func (p person) appendFirst(b []byte, rng *rand.Rand, atMs int64) []byte {
	return fmt.Appendf(b, `{"event_type":"signed_up","timestamp":%d,"user":{"email":%q,"external_id":%q,"first_name":%q,"last_name":%q,"geo":{"country":%q},"attributes":{"plan":%q,"age":%d,"city":"city-%d"}},"properties":{"source":"s%d"}}`,
		atMs, p.email(), p.externalID(), p.first, p.last, countries[p.n%len(countries)], plans[rng.IntN(len(plans))], 18+rng.IntN(60), rng.IntN(500), rng.IntN(9))
}

// appendEvent appends a later event.
func (p person) appendEvent(b []byte, rng *rand.Rand, atMs int64) []byte {
	kind := types[rng.IntN(len(types))]
	b = fmt.Appendf(b, `{"event_type":%q,"timestamp":%d,"user":{"external_id":%q},"properties":`, kind, atMs, p.externalID())
	switch kind {
	case "page_viewed":
		b = fmt.Appendf(b, `{"path":"/p/%d","seconds":%d}`, rng.IntN(300), rng.IntN(400))
	case "searched":
		b = fmt.Appendf(b, `{"term":"term-%d","results":%d}`, rng.IntN(2000), rng.IntN(90))
	default:
		b = fmt.Appendf(b, `{"product":"sku-%d","category":"cat-%d","value":%d.%02d,"quantity":%d,"currency":%q}`,
			rng.IntN(5000), rng.IntN(20), 1+rng.IntN(150), rng.IntN(100), 1+rng.IntN(5), []string{"EUR", "EUR", "GBP"}[rng.IntN(3)])
	}
	return append(b, '}')
}
