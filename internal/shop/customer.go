package shop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
)

// country is where customers live.
type country struct {
	code   string
	weight int
	// offsetHours is local time less UTC, without daylight saving.
	offsetHours int
	cities      []string
}

var countries = []country{
	{"DE", 34, 1, []string{"Berlin", "Hamburg", "München", "Köln", "Leipzig"}},
	{"FR", 18, 1, []string{"Paris", "Lyon", "Nantes", "Lille"}},
	{"NL", 12, 1, []string{"Amsterdam", "Utrecht", "Groningen"}},
	{"GB", 11, 0, []string{"London", "Leeds", "Bristol"}},
	{"ES", 8, 1, []string{"Madrid", "Sevilla", "Bilbao"}},
	{"SE", 6, 1, []string{"Stockholm", "Malmö"}},
	{"AT", 6, 1, []string{"Wien", "Graz"}},
	{"PL", 5, 1, []string{"Kraków", "Gdańsk"}},
}

var (
	firstNames = strings.Fields("Ada Noor Mateo Inge Kofi Mei Zoë Tariq Lena Jonas Chloé Hugo Sanne Daan Olivia Arthur Lucía Pablo Astrid Nils Marta Jakub Eva Felix")
	lastNames  = strings.Fields("Weber Okafor García Lindqvist Mensah Tanaka Müller Haddad Dubois Janssen Novak Kowalska Fischer Moreau Bakker Hughes Romero Bergström Huber Nowak Schmidt Leroy Visser Clarke")
)

// customer is a person and the shop's data of them at a point of the history.
type customer struct {
	number      int
	country     *country
	city        string
	first, last string
	// firstDay is the day of the first visit.
	firstDay int
	// guest buys with an e-mail alone, at least at first.
	guest bool
	// confirms reports whether the e-mail of an account ever becomes known,
	// signsUp whether a guest ever makes an account.
	confirms, signsUp bool
	newsletter        bool
	hasPhone          bool

	// seen is set with the first event, account with the sign-up.
	seen, account bool
	// emailKnownMs is when the e-mail is stitched to the account.
	emailKnownMs int64
	orders       int
	spentCents   int64
	tier         string
	// written is which identifiers the written events carried.
	written identifiers
}

// identifiers says which kinds of events there were of a person.
type identifiers struct{ email, external, both bool }

// profiles is how many profiles they make: e-mail and external id are one
// person's only once an event carries both.
func (w identifiers) profiles() int {
	switch {
	case w.both || w.email != w.external:
		return 1
	case w.email && w.external:
		return 2
	default:
		return 0
	}
}

const never = math.MaxInt64

func (c *customer) externalID() string { return fmt.Sprintf("cust-%05d", c.number) }

func (c *customer) email() string {
	return fmt.Sprintf("%s.%s%d@mail.example", ascii(c.first), ascii(c.last), c.number)
}

func (c *customer) phone() string { return fmt.Sprintf("+4930%07d", 1000000+c.number) }

var asciiOnly = strings.NewReplacer("ë", "e", "é", "e", "í", "i", "ü", "u", "ö", "o")

func ascii(name string) string { return asciiOnly.Replace(strings.ToLower(name)) }

// newCustomers makes the people and the running sum of their activity.
func newCustomers(rng *rand.Rand, n, days int) ([]customer, []float64) {
	total := 0
	for i := range countries {
		total += countries[i].weight
	}
	people := make([]customer, n)
	activity := make([]float64, n)
	sum := 0.0
	for i := range people {
		c := &people[i]
		c.number = i + 1
		c.country = chooseCountry(rng.IntN(total))
		c.city = c.country.cities[rng.IntN(len(c.country.cities))]
		c.first = firstNames[rng.IntN(len(firstNames))]
		c.last = lastNames[rng.IntN(len(lastNames))]
		// More people find the shop as it grows, none in its last days.
		c.firstDay = int(float64(days) * 0.9 * math.Sqrt(rng.Float64()))
		c.guest = rng.IntN(100) < 25
		c.confirms = rng.IntN(100) < 75
		c.signsUp = rng.IntN(100) < 45
		c.newsletter = rng.IntN(100) < 35
		c.hasPhone = rng.IntN(100) < 20
		c.emailKnownMs = never
		c.tier = "basic"
		sum += math.Exp(1.1 * rng.NormFloat64())
		activity[i] = sum
	}
	return people, activity
}

func chooseCountry(at int) *country {
	i := 0
	for ; at >= countries[i].weight; i++ {
		at -= countries[i].weight
	}
	return &countries[i]
}

// choose draws an index by running sums.
func choose(rng *rand.Rand, sums []float64) int {
	at := rng.Float64() * sums[len(sums)-1]
	return min(sort.SearchFloat64s(sums, at), len(sums)-1)
}
