package shop

import (
	"fmt"
	"time"
)

// Limits of [Options].
const (
	MaxCustomers = 5_000_000
	MaxOrders    = 20_000_000
	MaxDays      = 3_660
)

// Options say how large a history is made.
type Options struct {
	// Customers is how many people there are; not all of them buy.
	Customers int
	// Orders is how many visits end with a purchase.
	Orders int
	// Days is the length of the history.
	Days int
	// Seed chooses the history: the same options give the same bytes.
	Seed uint64
	// Until is the instant the history ends, excluded.
	Until time.Time
}

func (o Options) validate() error {
	switch {
	case o.Customers < 1 || o.Customers > MaxCustomers:
		return fmt.Errorf("customers must be 1 to %d, not %d", MaxCustomers, o.Customers)
	case o.Orders < 0 || o.Orders > MaxOrders:
		return fmt.Errorf("orders must be 0 to %d, not %d", MaxOrders, o.Orders)
	case o.Days < 1 || o.Days > MaxDays:
		return fmt.Errorf("days must be 1 to %d, not %d", MaxDays, o.Days)
	case o.Until.Year() < 1980 || o.Until.Year() > 2200:
		return fmt.Errorf("until must be a date from 1980 to 2200, not %v", o.Until)
	}
	return nil
}

// Totals is what a history holds, as it must come out of an import.
type Totals struct {
	Events int
	// Profiles is how many there are once everything is stitched that can be.
	Profiles int
	// ByType counts events by type.
	ByType map[string]int
	// PurchasedCents is the value of all purchases, in cents.
	PurchasedCents int64
}
