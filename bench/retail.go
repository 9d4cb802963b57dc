package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/musterhq/muster/bench/internal/retail"
)

func retailRun(_ context.Context, s streams, args []string) error {
	f := newFlags("retail", s)
	f.Usage = func() {
		s.logf("usage: bench retail [FILE]; without FILE the standard input is read; CSV, compressed by zstd or not")
	}
	if err := parse(f, args, 1); err != nil {
		return err
	}
	in := s.in
	if path := f.Arg(0); path != "" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	out := bufio.NewWriterSize(s.out, 1<<20)
	t, err := retail.Convert(in, out)
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the events: %w", err)
	}
	s.logf("%d rows: %d purchases worth %s by %d customers and %d returns, of %d customers in all; %d rows name no customer and were left out",
		t.Rows, t.Purchases, t.PurchasedValue, t.Buyers, t.Returns, t.Customers, t.WithoutCustomer)
	return nil
}
