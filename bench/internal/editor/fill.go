package editor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/internal/pause"
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
	u, err := server.LoopbackURL(r.credentials.BaseURL)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "editor %d %d %d", r.o.Seed, r.o.Profiles, r.o.EventsPerProfile))
	file := hex.EncodeToString(sum[:])
	rng := rand.New(rand.NewPCG(r.o.Seed, 77))
	end := time.Now().Add(-time.Hour).UnixMilli()
	start := end - pastDays*24*3600*1000
	total := r.o.Profiles * r.o.EventsPerProfile
	client := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{Proxy: nil}}
	defer client.CloseIdleConnections()
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
		if err := r.send(ctx, client, u.String()+"/events/import", body, row); err != nil {
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
func (r *run) send(ctx context.Context, client *http.Client, url string, body []byte, next int) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-App-Id", r.credentials.AppID)
		req.Header.Set("X-App-Secret", r.credentials.AppSecret)
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
		res.Body.Close()
		if err != nil {
			return err
		}
		if res.StatusCode == http.StatusServiceUnavailable {
			if err := pause.For(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		var answer struct {
			Success bool
			Next    int `json:"next_row"`
			Results []struct {
				Success bool
				Error   string
			}
		}
		if err := json.Unmarshal(text, &answer); err != nil || res.StatusCode != http.StatusAccepted || answer.Next != next {
			return fmt.Errorf("status %d: %.300s", res.StatusCode, text)
		}
		for _, x := range answer.Results {
			if !x.Success {
				return fmt.Errorf("an event was refused: %s", x.Error)
			}
		}
		return nil
	}
}
