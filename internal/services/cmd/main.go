// Command cmd starts and stops the servers that tests need; see package
// services. `make services-up` and `make services-down` run it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/musterhq/muster/internal/services"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "services:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: services up|down|jars")
	}
	if args[0] == "jars" {
		return services.PrintJars(ctx, os.Stdout)
	}
	root, err := services.Root()
	if err != nil {
		return err
	}
	switch args[0] {
	case "up":
		return services.Up(ctx, root, os.Stdout)
	case "down":
		return services.Down(root)
	}
	return fmt.Errorf("%q is not a command: up, down or jars", args[0])
}
