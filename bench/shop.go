package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/shop"
)

func shopRun(_ context.Context, s streams, args []string) error {
	var o shop.Options
	f := newFlags("shop", s)
	f.IntVar(&o.Customers, "customers", 120, "people; not all of them buy")
	f.IntVar(&o.Orders, "orders", 125, "visits that end with a purchase")
	f.IntVar(&o.Days, "days", 180, "length of the history in days")
	f.Uint64Var(&o.Seed, "seed", 1, "the same flags give the same bytes")
	until := f.String("until", "2025-12-01", "the day the history ends, excluded (UTC)")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	var err error
	if o.Until, err = time.Parse(time.DateOnly, *until); err != nil {
		return fmt.Errorf("until must be a day such as 2025-12-01, not %q", *until)
	}
	out := bufio.NewWriterSize(s.out, 1<<20)
	totals, err := shop.Generate(out, o)
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	s.logf("%d events of %d profiles, purchases worth %d.%02d EUR", totals.Events, totals.Profiles, totals.PurchasedCents/100, totals.PurchasedCents%100)
	for _, kind := range slices.Sorted(maps.Keys(totals.ByType)) {
		s.logf("  %7d %s", totals.ByType[kind], kind)
	}
	return nil
}
