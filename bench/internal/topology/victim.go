package topology

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// Victim is used by one goroutine, but for Gate.
type Victim struct {
	Installation *server.Installation
	// Variants are further arguments of the server; each start takes one of them.
	Variants [][]string
	// StartTimeout bounds a start.
	StartTimeout time.Duration
	Rng          *rand.Rand
	// Gate is shut while no server serves. The first Lift is the caller's.
	Gate *gate.Gate

	// Server is the one that runs, nil while none does.
	Server *server.Server
	// Kills are the moments of all kills, those of starts included.
	Kills []time.Time
	// WhileStarting is how many of them hit a start.
	WhileStarting int

	starts []time.Duration // those after a kill
}

// Start starts the server and leaves the gate as it is.
func (v *Victim) Start(ctx context.Context) (err error) {
	v.Server, err = v.installation().Start(ctx, v.StartTimeout)
	return err
}

// Kill kills the server, which must not have ended by itself, and shuts the gate.
func (v *Victim) Kill() error {
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

// Restart starts the server after a kill and opens the gate. One start in four
// is killed as well, at a random moment; it returns how many were.
func (v *Victim) Restart(ctx context.Context) (early int, err error) {
	for v.Rng.IntN(4) == 0 && early < maxEarly {
		if err := v.killWhileStarting(ctx); err != nil {
			return early, err
		}
		early++
	}
	if err := v.Start(ctx); err != nil {
		return early, fmt.Errorf("start after kill: %w", err)
	}
	v.starts = append(v.starts, v.Server.StartedIn)
	v.Gate.Lift()
	return early, nil
}

// Stop stops the server in an orderly way.
func (v *Victim) Stop(grace time.Duration) error {
	stopping := v.Server
	v.Server = nil
	return stopping.Stop(grace)
}

// Close kills the server if one runs: what a run does in the end, whatever came
// of it.
func (v *Victim) Close() error {
	if v.Server == nil {
		return nil
	}
	return v.Server.Kill()
}

// StartTimes are the median and the longest time until a server that had been
// killed served again; 0 when none was.
func (v *Victim) StartTimes() (median, longest time.Duration) {
	if len(v.starts) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(v.starts))
	return sorted[len(sorted)/2], sorted[len(sorted)-1]
}

// Wait waits for a random time between two bounds, or until ctx ends.
func (v *Victim) Wait(ctx context.Context, least, most time.Duration) error {
	return pause.For(ctx, least+time.Duration(v.Rng.Int64N(int64(most-least)+1)))
}

// installation is the installation with the arguments of the next start.
func (v *Victim) installation() *server.Installation {
	i := *v.Installation
	if n := len(v.Variants); n > 0 {
		i.Args = append(slices.Clip(i.Args), v.Variants[v.Rng.IntN(n)]...)
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
	v.WhileStarting++
	err = p.Kill()
	v.Kills = append(v.Kills, time.Now())
	return errors.Join(err, ctx.Err())
}
