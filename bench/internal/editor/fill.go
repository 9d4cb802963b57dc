package editor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/bench/internal/surface"
)

const (
	// chunkRows is how many rows are sent at once.
	chunkRows = 5000
	pastDays  = 90
	logEvery  = 10 * time.Second
)

// fill imports all events, person by person in each round, so that the events of one are
// spread over the days.
func (r *run) fill(ctx context.Context) error {
	// The server asks for a pause when it has too much to do.
	c, err := surface.NewClient(surface.Site{Credentials: r.credentials, Timeout: 2 * time.Minute, Pause: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	defer c.Close()
	sum := sha256.Sum256(fmt.Appendf(nil, "editor %d %d %d", r.o.Seed, r.o.Profiles, r.o.EventsPerProfile))
	file := hex.EncodeToString(sum[:])
	rng := rand.New(rand.NewPCG(r.o.Seed, 77))
	end := time.Now().Add(-time.Hour).UnixMilli()
	start := end - pastDays*24*3600*1000
	total := r.o.Profiles * r.o.EventsPerProfile
	var body []byte
	began := time.Now()
	said := began
	for row := 0; row < total; {
		body = fmt.Appendf(body[:0], `{"file":%q,"first_row":%d,"trigger_flows":false,"events":[`, file, row)
		first := row
		for ; row < total && row-first < chunkRows; row++ {
			if row > first {
				body = append(body, ',')
			}
			atMs := start + int64(float64(end-start)*float64(row)/float64(total))
			if p := newPerson(row % r.o.Profiles); row < r.o.Profiles {
				body = p.appendFirst(body, rng, atMs)
			} else {
				body = newPerson(rng.IntN(r.o.Profiles)).appendEvent(body, rng, atMs)
			}
		}
		body = append(body, "]}"...)
		if err := send(ctx, c, body, row); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
		if now := time.Now(); now.Sub(said) > logEvery {
			said = now
			r.o.Logf("%d of %d events, %.0f/s", row, total, float64(row)/now.Sub(began).Seconds())
		}
	}
	r.report.FillSeconds = time.Since(began).Seconds()
	return nil
}

// send posts a chunk; all of it must be stored.
func send(ctx context.Context, c *surface.Client, body []byte, next int) error {
	var answer struct {
		Next    int `json:"next_row"`
		Results []struct {
			Success bool
			Error   string
		}
	}
	if err := c.Call(ctx, surface.ByApp, "POST", "/api/v1/events/import", json.RawMessage(body), &answer, false); err != nil {
		return err
	}
	if answer.Next != next {
		return fmt.Errorf("the next row is %d, not %d", answer.Next, next)
	}
	for _, x := range answer.Results {
		if !x.Success {
			return fmt.Errorf("an event was refused: %s", x.Error)
		}
	}
	return nil
}
