package topology

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/internal/pause"
)

// maxEarly bounds how often one start is killed before it serves.
const maxEarly = 3

// UsualVariants start a server with its own checkpoint interval and with ones
// shorter than a round, so that kills hit checkpoints.
func UsualVariants() [][]string {
	return [][]string{
		nil,
		{"--checkpoint-interval", "50ms"},
		{"--checkpoint-interval", "300ms"},
	}
}

// Victim is a server on files that is killed and started again on the same data. It
// is used by one goroutine, but for Gate.
type Victim struct {
	// Rng decides the moments and the variants.
	Rng *rand.Rand
	// Gate is shut while no server serves.
	Gate *gate.Gate
	// Server is the one that runs, nil while none does.
	Server *server.Server
	// Kills are the moments of all kills, those of starts included.
	Kills []time.Time

	config        Kills
	site          *server.Installation
	began         time.Time
	whileStarting int             // kills that hit a start
	starts        []time.Duration // those after a kill
}

// NewVictim returns a victim whose server does not run yet, in a new directory.
func NewVictim(k Kills) (*Victim, error) {
	site, err := server.NewInstallation(filepath.Join(k.Dir, "server"), k.Binary, k.ServerArgs)
	return &Victim{config: k, site: site, Rng: rand.New(rand.NewPCG(k.Seed, 0)), Gate: gate.New(), began: time.Now()}, err
}

// Start starts the server for the first time and opens the gate.
func (v *Victim) Start(ctx context.Context) error {
	if err := v.start(ctx); err != nil {
		return fmt.Errorf("first start: %w", err)
	}
	v.Gate.Lift()
	return nil
}

func (v *Victim) start(ctx context.Context) (err error) {
	v.Server, err = v.installation().Start(ctx, v.config.StartTimeout)
	return err
}

// kill kills the server, which must not have ended by itself, and shuts the gate.
func (v *Victim) kill() error {
	select {
	case <-v.Server.Done():
		return fmt.Errorf("the server ended by itself; its last output:\n%s", v.Server.Tail())
	default:
	}
	if err := v.Server.Kill(); err != nil {
		return err
	}
	v.Kills = append(v.Kills, time.Now())
	v.Server = nil
	v.Gate.Drop()
	return nil
}

// restart starts the server after a kill and opens the gate. One start in four
// is killed as well, at a random moment; it returns how many were.
func (v *Victim) restart(ctx context.Context) (early int, err error) {
	for v.Rng.IntN(4) == 0 && early < maxEarly {
		if err := v.killWhileStarting(ctx); err != nil {
			return early, err
		}
		early++
	}
	if err := v.start(ctx); err != nil {
		return early, fmt.Errorf("start after kill: %w", err)
	}
	v.starts = append(v.starts, v.Server.StartedIn)
	v.Gate.Lift()
	return early, nil
}

// HistoryFile is the server's.
func (v *Victim) HistoryFile() string { return v.site.HistoryFile() }

// Stop stops the server in an orderly way.
func (v *Victim) Stop() error {
	stopping := v.Server
	v.Server = nil
	return stopping.Stop(v.config.StopTimeout)
}

// Wait waits for a random time between two bounds, or until ctx ends.
func (v *Victim) Wait(ctx context.Context, least, most time.Duration) error {
	return pause.For(ctx, least+time.Duration(v.Rng.Int64N(int64(most-least)+1)))
}

// installation returns the installation with the arguments of the next start.
func (v *Victim) installation() *server.Installation {
	i := *v.site
	if n := len(v.config.Variants); n > 0 {
		i.Args = append(slices.Clip(i.Args), v.config.Variants[v.Rng.IntN(n)]...)
	}
	return &i
}

func (v *Victim) killWhileStarting(ctx context.Context) error {
	p, err := v.installation().Launch()
	if err != nil {
		return err
	}
	// Up to a good part beyond the usual start, so that every step is hit.
	usual := 100 * time.Millisecond
	if n := len(v.starts); n > 0 {
		usual = v.starts[n-1]
	}
	pause.For(ctx, time.Duration(v.Rng.Int64N(int64(usual)*5/4)+1))
	v.whileStarting++
	err = p.Kill()
	v.Kills = append(v.Kills, time.Now())
	return errors.Join(err, ctx.Err())
}
