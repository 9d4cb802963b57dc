package main

import (
	"context"
	"fmt"
	"net"

	"github.com/musterhq/muster/bench/internal/baseline"
	"github.com/musterhq/muster/bench/internal/contest"
)

// baselineCommand is how the bench starts itself as a baseline server.
const baselineCommand = "baseline-server"

func baselineServer(ctx context.Context, s streams, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs a kind", baselineCommand)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s%s\n", contest.BaselineReady, l.Addr())
	return baseline.Serve(ctx, l, baseline.Kind(args[0]))
}
