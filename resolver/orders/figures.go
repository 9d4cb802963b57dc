package orders

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/resolver/internal/feature"
)

// Figures are sums in one currency.
type Figures struct {
	Orders   int64  `json:"orders"`
	Total    Amount `json:"total"`    // of the orders, before refunds
	Refunded Amount `json:"refunded"` // taken off by refunds
}

// Revenue is what is left after refunds.
func (f Figures) Revenue() Amount { return f.Total - f.Refunded }

// Average is the average total of an order, before refunds.
func (f Figures) Average() Amount { return f.Total.Over(f.Orders) }

func (f *Figures) add(x Figures) {
	f.Orders += x.Orders
	f.Total += x.Total
	f.Refunded += x.Refunded
}

// Day is the figures of an account on a day, in one currency: of orders by their own time, and
// of refunds by theirs.
type Day struct {
	Date     string `json:"date"` // such as 2026-11-26, of UTC; "" for all days together
	Currency string `json:"currency"`
	Figures
	Attributed Figures `json:"attributed"` // what of it belongs to messages
}

// SourceFigures are the figures of a campaign, or of a step of a flow, on a channel, in one
// currency.
type SourceFigures struct {
	Source
	Currency string `json:"currency"`
	Figures
}

// The bounds of the tables.
const (
	// MaxDays is how many days before the log time have figures of their own; those of all days
	// together stay.
	MaxDays       = 400
	MaxCurrencies = 50
	// maxSources bounds sources times currencies. Orders behind it belong to no message.
	maxSources = 50_000
	dayMs      = 24 * hourMs
)

func dateOf(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

func sourceName(s *Source, currency string) string {
	return strings.Join([]string{currency, s.Campaign, s.Flow, s.Step, s.Channel}, "\x00")
}

// mayAttribute reports whether there is room for the figures of a source.
func (s *State) mayAttribute(source *Source, currency string) bool {
	return s.sources.Get(sourceName(source, currency)) != nil || s.sources.Len() < maxSources
}

// hasRoom reports whether an order's total can be added to the account's.
func (s *State) hasRoom(currency string, total Amount) bool {
	all := s.days.Get(dayName("", currency))
	if all == nil {
		return s.currencies < MaxCurrencies
	}
	return all.Total <= maxSum-total
}

func dayName(date, currency string) string { return date + "/" + currency }

// count adds to the figures of the account on the day of an instant, to those of all days, and
// to those of a source, if there is one.
func (s *State) count(tx *feature.Tx, atMs int64, currency string, source *Touch, x Figures) {
	oldest := dateOf(tx.AtMs - MaxDays*dayMs)
	for _, date := range [...]string{"", dateOf(atMs)} {
		if date != "" && date <= oldest {
			continue
		}
		d := Day{Date: date, Currency: currency}
		if old := s.days.Get(dayName(date, currency)); old != nil {
			d = *old
		} else if date != "" {
			s.dropDays(tx, oldest)
		} else {
			s.currencies++
		}
		d.add(x)
		if source != nil {
			d.Attributed.add(x)
		}
		s.days.Put(tx, dayName(date, currency), &d)
	}
	if source == nil {
		return
	}
	f := SourceFigures{Source: source.Source, Currency: currency}
	name := sourceName(&f.Source, currency)
	if old := s.sources.Get(name); old != nil {
		f = *old
	}
	f.add(x)
	s.sources.Put(tx, name, &f)
}

// dropDays removes the days up to a date. It is called once for a new day and currency.
func (s *State) dropDays(tx *feature.Tx, upTo string) {
	for name, d := range s.days.All() {
		if d.Date != "" && d.Date <= upTo {
			s.days.Delete(tx, name)
		}
	}
}

// Totals are the figures of all days together, by currency.
func (s *State) Totals() []Day { return s.sortedDays(func(d *Day) bool { return d.Date == "" }) }

// Days lists the figures of days from one to another, both included, the oldest first. A table
// has at most [MaxDays] of them, since those before are removed.
func (s *State) Days(from, to string) []Day {
	return s.sortedDays(func(d *Day) bool { return d.Date != "" && d.Date >= from && d.Date <= to })
}

func (s *State) sortedDays(of func(*Day) bool) (out []Day) {
	for _, d := range s.days.All() {
		if of(d) {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(x, y Day) int {
		return cmp.Or(cmp.Compare(x.Date, y.Date), cmp.Compare(x.Currency, y.Currency))
	})
	return out
}

// OfCampaign are the figures of a campaign on all its channels, by currency.
func (s *State) OfCampaign(id string) []CurrencyFigures {
	return ByCurrency(s.Sources(func(x *Source) bool { return x.Campaign == id }))
}

// ByCurrency adds up figures of sources, by currency.
func ByCurrency(list []*SourceFigures) []CurrencyFigures {
	var r record
	for _, f := range list {
		r.add(f.Currency, f.Figures)
	}
	return r.Totals
}

// Sources are the figures that belong to messages of some sources, in no order. They must not be
// changed. What is read of them needs no lock, for a change puts others in their place: so
// [SortSources] and [TopSources] do not hold up the log's records.
func (s *State) Sources(of func(*Source) bool) (out []*SourceFigures) {
	for _, f := range s.sources.All() {
		if of(&f.Source) {
			out = append(out, f)
		}
	}
	return out
}

func (s *Source) compare(x *Source) int {
	return cmp.Or(cmp.Compare(s.Campaign, x.Campaign), cmp.Compare(s.Flow, x.Flow), cmp.Compare(s.Step, x.Step), cmp.Compare(s.Channel, x.Channel))
}

// SortSources puts figures in order of campaigns, flows, steps, channels and currencies.
func SortSources(list []*SourceFigures) {
	slices.SortFunc(list, func(x, y *SourceFigures) int {
		return cmp.Or(x.compare(&y.Source), cmp.Compare(x.Currency, y.Currency))
	})
}

// TopSources are those with the most revenue, at most limit of each currency.
func TopSources(list []*SourceFigures, limit int) (top []*SourceFigures) {
	slices.SortFunc(list, func(x, y *SourceFigures) int {
		return cmp.Or(cmp.Compare(x.Currency, y.Currency), cmp.Compare(y.Revenue(), x.Revenue()), x.compare(&y.Source))
	})
	n := 0
	for i, f := range list {
		if i > 0 && f.Currency != list[i-1].Currency {
			n = 0
		}
		if n++; n <= limit {
			top = append(top, f)
		}
	}
	return top
}
