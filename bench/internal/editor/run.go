package editor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/bench/internal/topology"
	"github.com/musterhq/muster/internal/pause"
)

const liveLimit = 10 * time.Minute

// run is one measurement.
type run struct {
	o           Options
	credentials server.Credentials
	// credentialsFile is an absolute path.
	credentialsFile string
	client          *surface.Client
	report          Report
	rng             *rand.Rand
	segment         string // one that is live
}

// ErrDiffers means that two answers about the same are not the same.
var ErrDiffers = errors.New("the answers differ")

// Run fills a server and measures it. What was measured before an error is in the report.
func Run(ctx context.Context, o Options) (rep *Report, err error) {
	i, err := server.NewInstallation(filepath.Join(o.Dir, "server"), o.Binary, o.ServerArgs)
	if o.Kept != "" {
		i, err = server.KeptInstallation(o.Kept, o.Binary, o.ServerArgs)
	}
	if err != nil {
		return nil, err
	}
	s, err := topology.Open(ctx, i)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, fault := s.Stop()
		err = errors.Join(err, fault)
	}()
	r := &run{o: o, credentials: s.Credentials, client: s.Console, report: Report{Options: o}, rng: rand.New(rand.NewPCG(o.Seed, 78))}
	if r.credentialsFile, err = filepath.Abs(s.CredentialsFile()); err != nil {
		return nil, err
	}
	defer r.client.SignOut(context.WithoutCancel(ctx))
	phases := []func(context.Context) error{r.fill, r.define, r.searches, r.suggestions, r.previews, r.keystrokes}
	if o.Kept != "" {
		phases[0], phases[1] = func(context.Context) error { return nil }, r.findSegment
	}
	for _, phase := range phases {
		if err := phase(ctx); err != nil {
			return &r.report, err
		}
	}
	return &r.report, nil
}

// define saves the segments whose conditions the engine is to know.
func (r *run) define(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, liveLimit)
	defer cancel()
	r.o.Logf("saving segments")
	began := time.Now()
	for i, c := range known() {
		var err error
		if r.segment, err = r.client.CreateLiveSegment(ctx, fmt.Sprintf("known %d", i), c); err != nil {
			return err
		}
	}
	r.report.DefineSeconds = time.Since(began).Seconds()
	return nil
}

// findSegment takes a segment that an earlier run saved.
func (r *run) findSegment(ctx context.Context) error {
	var saved []struct {
		ID string `json:"_id"`
	}
	if err := r.client.Console(ctx, "GET", "/segments?limit=1", nil, &saved); err != nil {
		return err
	}
	if len(saved) == 0 {
		return errors.New("the server that was kept has no segment: name one that a whole run has filled")
	}
	r.segment = saved[0].ID
	return nil
}

// timed asks n times, a different question each.
func (r *run) timed(name string, target float64, n int, ask func(i int) error) error {
	r.o.Logf("%s", name)
	times := make([]float64, 0, n)
	for i := range n {
		began := time.Now()
		if err := ask(i); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		times = append(times, float64(time.Since(began))/1e6)
	}
	r.report.add(name, target, 0.99, times)
	return nil
}

// searches looks for people as a user types: two letters up to whole e-mails.
func (r *run) searches(ctx context.Context) error {
	ask := func(text func(person) string, more string) func(int) error {
		return func(int) error {
			p := newPerson(r.rng.IntN(r.o.Profiles))
			var found []struct {
				ID string `json:"profile_id"`
			}
			if err := r.client.Console(ctx, "GET", "/profiles/search?limit=25&q="+url.QueryEscape(text(p))+more, nil, &found); err != nil {
				return err
			}
			if len(found) == 0 && more == "" {
				return fmt.Errorf("no profile is found by %q, which is of %s: %w", text(p), p.email(), ErrDiffers)
			}
			return nil
		}
	}
	prefix := func(p person) string {
		text := []string{p.email(), p.first + " " + p.last, p.last, p.externalID()}[r.rng.IntN(4)]
		return text[:2+r.rng.IntN(len(text)-1)]
	}
	for _, x := range []struct {
		name string
		ask  func(int) error
	}{
		{"search by prefix", ask(prefix, "")},
		{"search by whole e-mail", ask(person.email, "")},
		{"search in a segment", ask(prefix, "&segment_id="+r.segment)},
		{"search by status", ask(prefix, "&status=Subscribed")},
		{"list, latest event first", func(int) error {
			var found []any
			return r.client.Console(ctx, "GET", "/profiles/search?limit=25&sort=last_event", nil, &found)
		}},
	} {
		if err := r.timed(x.name, searchTarget, r.o.Searches, x.ask); err != nil {
			return err
		}
	}
	return nil
}

// suggestions asks for what an editor offers.
func (r *run) suggestions(ctx context.Context) error {
	for _, x := range []struct{ name, path string }{
		{"suggest event types", "/catalog"}, {"suggest properties and values", "/catalog/purchased"}, {"suggest attributes", "/attributes"},
	} {
		err := r.timed(x.name, suggestTarget, r.o.Suggestions, func(int) error {
			var data any
			return r.client.Console(ctx, "GET", x.path, nil, &data)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// previews asks definitions of ten conditions, three of them new, and then edits their
// thresholds. One is saved in the end: the segment must hold as many.
func (r *run) previews(ctx context.Context) error {
	r.o.Logf("previews")
	if err := r.client.AwaitHistory(ctx); err != nil {
		return err
	}
	var first, edited, again []float64
	preview := func(n, threshold int, times *[]float64) error {
		began := time.Now()
		if _, err := r.client.Preview(ctx, definition(n, threshold)); err != nil {
			return fmt.Errorf("definition %d: %w", n, err)
		}
		*times = append(*times, float64(time.Since(began))/1e6)
		return nil
	}
	for n := range r.o.Definitions {
		err := preview(n, 0, &first)
		if err == nil {
			err = preview(n, 0, &again)
		}
		for e := range r.o.Edits {
			if err == nil {
				err = preview(n, 1+e, &edited)
			}
		}
		if err != nil {
			return err
		}
	}
	r.report.add("preview, first time", firstTarget, 0.99, first)
	r.report.add("preview, the same again", editTarget, 0.99, again)
	r.report.add("preview, threshold edited", editTarget, 0.99, edited)
	return r.agree(ctx)
}

// agree compares a preview with the saved segment. Windows move meanwhile; what did not
// change between two previews must be what the segment has between them.
func (r *run) agree(ctx context.Context) error {
	text := definition(0, 0)
	ctx, cancel := context.WithTimeout(ctx, liveLimit)
	defer cancel()
	id, err := r.client.CreateSegment(ctx, "as previewed", text)
	if err != nil {
		return err
	}
	return pause.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		before, err := r.client.Preview(ctx, text)
		if err != nil {
			return false, err
		}
		live, have, err := r.client.Segment(ctx, id)
		if err != nil {
			return false, err
		}
		after, err := r.client.Preview(ctx, text)
		if err != nil || !live || before != after {
			return false, err
		}
		if have != before {
			return false, fmt.Errorf("a preview has %d profiles, the segment %d: %w", before, have, ErrDiffers)
		}
		r.report.Agreed = have
		return true, nil
	})
}
