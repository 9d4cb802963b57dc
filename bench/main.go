package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/duckdb/duckdb-go/v2" // the driver "duckdb" of package history
)

// command is one subcommand. It parses its own flags.
type command struct {
	name, what string
	run        func(ctx context.Context, s streams, args []string) error
	hidden     bool
}

func commands() []command {
	return []command{
		{name: "ingest", what: "load a server beside baseline servers and check each event counts once", run: ingest},
		{name: "builds", what: "load two builds of the server in turns and compare their rate and CPU", run: buildsRun},
		{name: "soak", what: "load a server for long at half its rate and sample memory, files, disk and latencies", run: soakRun},
		{name: "crash", what: "kill a server under load and check nothing is lost or doubled", run: crashRun},
		{name: "recovery", what: "kill a server under clients that retry at once and measure when it takes events again", run: recoveryRun},
		{name: "chaos", what: "kill, freeze and cut off nodes, Kafka and ClickHouse under load and check the same", run: chaosRun},
		{name: "segments", what: "grow an account and measure the segment engine at each size, checked against SQL", run: segmentsRun},
		{name: "console", what: "fill a server and measure searches, suggestions and previews as a console asks them", run: consoleRun},
		{name: "flows", what: "measure flows under load and what sleeping enrolments cost", run: flowsRun},
		{name: "cluster", what: "load nodes on Kafka and ClickHouse beside the bare clients of both, and move a partition", run: clusterRun},
		{name: "figures", what: "measure ingest, recovery and segments, and write one page of figures with charts", run: figuresRun},
		{name: "shop", what: "write the history of a made-up shop as JSON lines", run: shopRun},
		{name: "retail", what: "convert the UCI Online Retail file to JSON lines", run: retailRun},
		{name: baselineCommand, run: baselineServer, hidden: true},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := dispatch(ctx, streams{os.Stdin, os.Stdout, os.Stderr}, os.Args[1:]); {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, s streams, args []string) error {
	if len(args) > 0 {
		for _, c := range commands() {
			if c.name == args[0] {
				return c.run(ctx, s, args[1:])
			}
		}
	}
	s.logf("usage: bench COMMAND [flags]; bench COMMAND -h lists the flags\n")
	for _, c := range commands() {
		if !c.hidden {
			s.logf("  %-8s %s", c.name, c.what)
		}
	}
	if len(args) == 0 {
		return flag.ErrHelp
	}
	return fmt.Errorf("there is no command %q", args[0])
}
