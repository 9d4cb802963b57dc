package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/flowcrash"
	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
)

// check compares everything, once nothing runs any more.
func (r *run) check(ctx context.Context, disturbed flowcrash.Disturbance) error {
	file := filepath.Join(r.config.Dir, fmt.Sprintf("probes-%d-%%d.html", r.round.Load()+1))
	r.flows.Keys(r.sent.add)
	for i, p := range r.probes {
		p.keys(r.sent.add)
		if err := p.check(ctx, fmt.Sprintf(file, i)); err != nil {
			return fmt.Errorf("company %d: %w", i, err)
		}
	}
	if _, err := r.site.CaughtUp(ctx); err != nil {
		return err
	}
	for i, c := range r.clients {
		if err := r.sameAnswers(ctx, c); err != nil {
			return fmt.Errorf("company %d: %w", i, err)
		}
	}
	var nodes []server.Credentials
	for _, origin := range r.site.Origins() {
		nodes = append(nodes, r.companies[0].At(origin))
	}
	var rows []history.Key
	work, err := r.events.Check(ctx, crash.Sources{Nodes: nodes, Keys: func(visit func(history.Key) error) error {
		if err := r.stored.read(ctx, r.site.clickHouse.DSN(), func(k history.Key) { rows = append(rows, k) }); err != nil {
			return err
		}
		return r.sent.check(rows, visit)
	}})
	if err != nil {
		return err
	}
	r.report.Events = work
	r.disturbed = append(r.disturbed, disturbed)
	return r.flows.Check(ctx, r.disturbed, nil)
}

// asOf is the instant of an answer, in which they differ.
var asOf = regexp.MustCompile(`"as_of":"[^"]*"`)

// sameAnswers asks every node for all segments and flows of a company, with their
// counts.
func (r *run) sameAnswers(ctx context.Context, c *surface.Client) error {
	for _, path := range []string{"/segments?limit=100", "/flows?limit=100"} {
		first := ""
		for i, origin := range r.site.Origins() {
			text, err := c.At(origin).Once(ctx, surface.BySession, "GET", "/console/api/v1"+path, nil)
			text = asOf.ReplaceAll(text, nil)
			switch {
			case err != nil:
				return fmt.Errorf("node %d: GET %s: %w", i, path, err)
			case i == 0:
				first = string(text)
			case string(text) != first:
				return fmt.Errorf("GET %s: node %d answers\n%s\nnode 0 answers\n%s", path, i, text, first)
			}
		}
	}
	return nil
}
