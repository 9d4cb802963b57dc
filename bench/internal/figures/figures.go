// Package figures makes one page of what the other measurements found.
package figures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/contest"
	"github.com/musterhq/muster/bench/internal/recovery"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/segments"
	"github.com/musterhq/muster/bench/internal/server"
)

// Options are those of the three measurements. Their server and directories are set by Run.
type Options struct {
	Ingest   contest.Options  `json:"ingest"`
	Segments segments.Options `json:"segments"`
	Recovery recovery.Options `json:"recovery"`

	server.Options
}

// Validate reports the first fault of the options.
func (o Options) Validate() error {
	return errors.Join(o.Ingest.Validate(), o.Segments.Validate(), o.Recovery.Validate())
}

// Report is what was measured; what is nil was not.
type Report struct {
	report.Machine
	// Version is what `muster version` prints, Begun when the measurement began.
	Version string    `json:"version"`
	Begun   time.Time `json:"begun"`

	Ingest   *contest.Report  `json:"ingest"`
	Segments *segments.Report `json:"segments"`
	Recovery *recovery.Report `json:"recovery"`
}

// Run measures one after the other. After a fault the report holds what was measured before.
func Run(ctx context.Context, o Options) (r *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r = &Report{Machine: report.ThisMachine(), Begun: time.Now()}
	if r.Version, err = server.Version(ctx, o.Binary); err != nil {
		return nil, err
	}
	o.Ingest.Options, o.Recovery.Options, o.Segments.Options = o.Options, o.Options, o.Options
	for _, dir := range []*string{&o.Ingest.Dir, &o.Recovery.Dir, &o.Segments.Dir} {
		if *dir, err = os.MkdirTemp(o.Dir, "figures-"); err != nil {
			return r, fmt.Errorf("making a directory: %w", err)
		}
	}
	if r.Ingest, err = contest.Run(ctx, o.Ingest); err != nil {
		return r, fmt.Errorf("ingest: %w", err)
	}
	if r.Recovery, err = recovery.Run(ctx, o.Recovery); err != nil {
		return r, fmt.Errorf("recovery: %w", err)
	}
	if r.Segments, err = segments.Run(ctx, o.Segments); err != nil {
		return r, fmt.Errorf("segments: %w", err)
	}
	return r, nil
}

// Write writes README.md, the page, and its charts into a directory.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	var charts []string
	if r.Ingest != nil {
		names, err := r.Ingest.Plot(dir)
		if err != nil {
			return err
		}
		charts = names
	}
	if r.Segments != nil {
		names, err := r.Segments.Plot(dir)
		if err != nil {
			return err
		}
		charts = append(charts, names...)
	}
	slices.Sort(charts)
	if err := os.WriteFile(filepath.Join(dir, "README.md"), r.page(charts), 0o644); err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	return nil
}

// Print writes the page without charts.
func (r *Report) Print(w io.Writer) error {
	_, err := w.Write(r.page(nil))
	return err
}

func (r *Report) page(charts []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Figures\n\nMade by `go run ./bench figures` on %s, with %s, on %d CPUs (%s). Loader and server share the machine.\n",
		r.Begun.UTC().Format("2006-01-02"), r.Version, r.CPUs, r.Go)
	if r.Ingest != nil {
		fmt.Fprintf(&b, "Ingest: medians of rounds (%d) with phases of %v.\n", r.Ingest.Options.Rounds, r.Ingest.Options.Duration)
	}
	for _, s := range []section{r.ingest(), r.recovery(), r.segments()} {
		s.write(&b)
	}
	b.WriteString(r.targets())
	if len(charts) > 0 {
		b.WriteString("\n## Charts\n\n")
		for _, name := range charts {
			fmt.Fprintf(&b, "![%s](%s)\n", strings.TrimSuffix(name, ".svg"), name)
		}
	}
	return b.Bytes()
}
