package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/cmd/muster/internal/demo"
)

// demoSeed makes the shop the same for everybody.
const demoSeed = 1

// checkDemo refuses to fill a directory that has anything in it.
func (c *serveConfig) checkDemo() error {
	if !c.demo {
		return nil
	}
	entries, err := os.ReadDir(c.engine.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	for _, e := range entries {
		if filepath.Join(c.engine.Dir, e.Name()) != filepath.Clean(c.credentials) {
			return wrongUsage("--demo fills an empty directory, and %s has %s. Leave --demo out to serve what is there, or name another directory with --data", c.engine.Dir, e.Name())
		}
	}
	return nil
}

// fillDemo fills the company that this start made with a made-up shop, and has events go
// on arriving until the service drains.
func (c *serveConfig) fillDemo(ctx context.Context, s *services, origin string) error {
	if !c.demo || c.founded == nil {
		return nil
	}
	began := time.Now()
	// The listener is this process's own, whatever its certificate says.
	transport := &http.Transport{Proxy: nil, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	o := demo.Options{Client: &http.Client{Transport: transport}, Origin: origin, Credentials: *c.founded, Now: time.Now, Seed: demoSeed, TempDir: os.TempDir(), Logger: c.log}
	shop, err := demo.Fill(ctx, o)
	if err != nil {
		transport.CloseIdleConnections()
		return fmt.Errorf("%w. Remove %s before you try again", err, c.engine.Dir)
	}
	c.log.Info("the demo shop is open", "took", time.Since(began).Round(time.Millisecond))
	s.background(func(ctx context.Context) {
		defer transport.CloseIdleConnections()
		shop.Live(ctx)
	})
	return nil
}
