package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

const usage = `muster serves a customer-engagement service from one data directory.

  muster serve   start the service
  muster export  write profiles, segments or events as JSON lines
  muster import  bring in files of past events
  muster migrate move a data directory to Kafka and ClickHouse
  muster backup  copy a data directory to storage, also while it is served
  muster restore copy a backup to a new data directory
  muster history copy the history of events, as a DuckDB file for SQL
  muster check   report whether a stopped data directory is whole
  muster repair  rebuild damaged state and history from the log
  muster admin   manage companies, users and API keys of a server
  muster health  report whether the server on this machine serves
  muster version print the version

"muster COMMAND --help" lists the flags of a command.`

func main() {
	p := &process{args: os.Args[1:], env: os.LookupEnv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, replace: replaceProcess}
	runtime.GOMAXPROCS(processors(p.env, runtime.GOMAXPROCS(0)))
	os.Exit(p.run(stopSignal()))
}

// processors is how many goroutines run at a time, of as many as Go would run: one more, unless
// the environment says how many. What the log waits for on the disk and what writes history keep
// one of them busy for a while without running Go, and an event must not wait for that. A limit of
// processors that changes while the program runs is not followed.
func processors(env func(string) (string, bool), usual int) int {
	if _, set := env("GOMAXPROCS"); set {
		return usual
	}
	return usual + 1
}

// stopSignal returns a context that ends at the first SIGTERM or SIGINT. The
// second ends the process at once.
func stopSignal() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		stop()
		<-signals
		os.Exit(exitFailed)
	}()
	return ctx
}

func (p *process) run(ctx context.Context) int {
	privateFiles()
	command := ""
	if len(p.args) > 0 {
		command = p.args[0]
		p.args = p.args[1:]
	}
	var err error
	switch command {
	case "serve":
		err = p.serveWhole(ctx)
	case "export":
		err = p.export(ctx)
	case "import":
		err = p.importFiles(ctx)
	case "migrate":
		err = p.migrate(ctx)
	case "backup":
		err = p.backup(ctx)
	case "restore":
		err = p.restore(ctx)
	case "history":
		err = p.history(ctx)
	case "check":
		err = p.check(ctx)
	case "repair":
		err = p.repair(ctx)
	case "admin":
		err = p.admin(ctx)
	case "health":
		err = p.health(ctx)
	case "version", "--version":
		fmt.Fprintln(p.stdout, version())
	case "help", "--help", "-h":
		fmt.Fprintln(p.stdout, usage)
	case "":
		err = wrongUsage("name a command\n\n%s", usage)
	default:
		err = wrongUsage("there is no command %q\n\n%s", command, usage)
	}
	var wrong usageError
	var coded exitError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &wrong):
		fmt.Fprintln(p.stderr, "muster:", err)
		if !strings.Contains(err.Error(), usage) {
			fmt.Fprintf(p.stderr, "muster %s --help lists the flags\n", command)
		}
		return exitUsage
	case errors.As(err, &coded):
		fmt.Fprintln(p.stderr, "muster:", err)
		return coded.code
	}
	p.failed(explain(err))
	return exitFailed
}
