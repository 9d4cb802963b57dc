package shop

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// product is something the shop sells.
type product struct {
	id, name, category string
	cents              int64
}

var ranges = []struct {
	category string
	cents    float64 // typical price
	things   []string
}{
	{"kitchen", 1900, []string{"teapot", "bread knife", "pepper mill", "mixing bowl", "espresso cup", "apron"}},
	{"lighting", 5900, []string{"desk lamp", "floor lamp", "lantern", "string lights"}},
	{"textiles", 2900, []string{"wool blanket", "linen towel", "cushion", "table runner", "bath mat"}},
	{"garden", 2400, []string{"watering can", "pruning shears", "planter", "bird feeder"}},
	{"stationery", 790, []string{"notebook", "fountain pen", "card set", "desk calendar", "ink bottle"}},
	{"toys", 1700, []string{"wooden train", "puzzle", "kite", "spinning top"}},
	{"furniture", 18900, []string{"stool", "side table", "bookshelf"}},
}

var makes = []string{"oak", "copper", "blue", "white", "slate", "ochre"}

// newCatalogue makes every thing in every make. Popularity falls with the
// place in the catalogue, which is therefore shuffled.
func newCatalogue(rng *rand.Rand) []product {
	var all []product
	for _, r := range ranges {
		for _, thing := range r.things {
			for _, m := range makes {
				price := r.cents * math.Exp(0.45*rng.NormFloat64())
				all = append(all, product{
					name: m + " " + thing, category: r.category, cents: niceCents(price),
				})
			}
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		all[i].id = fmt.Sprintf("P%04d", i+1)
	}
	return all
}

// niceCents rounds to the prices shops like: whole euros less ten cents.
func niceCents(price float64) int64 {
	return max(int64(math.Round(price/100)), 1)*100 - 10
}

// pick chooses a product, a popular one more often.
func pick(rng *rand.Rand, catalogue []product) *product {
	return &catalogue[int(float64(len(catalogue))*math.Pow(rng.Float64(), 1.8))]
}
