package forms

import (
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Figures count what happened at a form.
type Figures struct {
	Views       uint64 `json:"views"`       // of the hosted page
	Submissions uint64 `json:"submissions"` // that were taken, without repeats
	// Conversions are submissions that took effect: at once, or when they were confirmed.
	Conversions uint64 `json:"conversions"`
	// Unconfirmable are submissions that had to be confirmed while no message could be sent: the
	// address is suppressed or erased, there were too many, or no e-mail credits.
	Unconfirmable uint64 `json:"unconfirmable"`
}

// Day is the figures of a form on one day.
type Day struct {
	Date string `json:"date"` // such as 2026-11-26, of UTC; "" for all days together
	Figures
}

const (
	// MaxDays is how many days are kept of a form; the figures of all days together stay.
	MaxDays = 400
	dayMs   = 24 * 60 * 60 * 1000
	// maxViews bounds what one record counts.
	maxViews = 1_000_000_000
)

// Viewed counts views of a form's page. Views are counted in memory and recorded now and then,
// since not every look at a page is to make a record.
type Viewed struct {
	ID    string `json:"id"`
	Views uint64 `json:"views"`
}

// dateOf is the day of an instant.
func dateOf(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

func dayName(form, date string) string { return form + "/" + date }

// count adds to the figures of the day, and to those of all days.
func (s *State) count(tx *feature.Tx, form string, add func(*Figures)) {
	today := dateOf(tx.AtMs)
	for _, date := range [...]string{"", today} {
		name := dayName(form, date)
		var d Day
		if old := s.days.Get(name); old != nil {
			d = *old
		} else if date != "" {
			s.dropOldDays(tx, form, dateOf(tx.AtMs-MaxDays*dayMs))
		}
		d.Date = date
		add(&d.Figures)
		s.days.Put(tx, name, &d)
	}
}

// dropOldDays removes a form's days up to a date.
func (s *State) dropOldDays(tx *feature.Tx, form, upTo string) {
	for _, d := range s.daysOf(form) {
		if d.Date <= upTo {
			s.days.Delete(tx, dayName(form, d.Date))
		}
	}
}

// dropDays removes all that was counted of a form.
func (s *State) dropDays(tx *feature.Tx, form string) {
	for _, d := range s.daysOf(form) {
		s.days.Delete(tx, dayName(form, d.Date))
	}
	s.days.Delete(tx, dayName(form, ""))
}

// daysOf lists a form's days, the oldest first.
func (s *State) daysOf(form string) (out []Day) {
	for name, d := range s.days.All() {
		if date, is := strings.CutPrefix(name, form+"/"); is && date != "" {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(x, y Day) int { return strings.Compare(x.Date, y.Date) })
	return out
}

func (s *State) viewed(tx *feature.Tx, c Viewed) *refuse.Refusal {
	switch {
	case s.forms.Get(c.ID) == nil:
		return noForm()
	case c.Views == 0 || c.Views > maxViews:
		return refuse.Invalid("views", "views must be between 1 and %d", maxViews)
	}
	s.count(tx, c.ID, func(f *Figures) { f.Views += c.Views })
	return nil
}

// Total is the figures of a form over all days.
func (s *State) Total(form string) Figures {
	if d := s.days.Get(dayName(form, "")); d != nil {
		return d.Figures
	}
	return Figures{}
}

// Days lists the days of a form on which something happened, from one to another, both
// included, the oldest first.
func (s *State) Days(form, from, to string) []Day {
	return slices.DeleteFunc(s.daysOf(form), func(d Day) bool { return d.Date < from || d.Date > to })
}
