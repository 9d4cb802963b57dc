package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/condition"
	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/surface"
)

// probes post and read in small groups and keep the history of it.
type probes struct {
	client   *surface.Client
	seed     uint64
	company  int
	round    int
	segments [groups][levels]string
	base     base
	began    time.Time
	work     ProbeWork

	mu struct {
		sync.Mutex
		history []porcupine.Operation
		// posted are the keys that were sent in this round, acked those with an
		// answer.
		posted, acked map[probe]bool
	}
}

func newProbes(c *surface.Client, company int, seed uint64) *probes {
	p := &probes{client: c, company: company, seed: seed, began: time.Now()}
	p.clear()
	return p
}

func (p *probes) clear() {
	p.mu.history, p.mu.posted, p.mu.acked = nil, map[probe]bool{}, map[probe]bool{}
}

func probeType(group int) string { return fmt.Sprintf("probe_%d", group) }

func (p *probes) externalID(group, person int) string {
	return fmt.Sprintf("probe-%d-%d-%d", p.round, group, person)
}

func (p *probes) key(x probe) string {
	return fmt.Sprintf("l%d-%d-%d-%d-%d", p.company, p.round, x.group, x.person, x.key)
}

// setUp saves the segments and waits until they are live.
func (p *probes) setUp(ctx context.Context) (err error) {
	for g := range groups {
		for l := range levels {
			definition := condition.Activity(probeType(g), condition.Count(">=", l+1))
			if p.segments[g][l], err = p.client.CreateLiveSegment(ctx, fmt.Sprintf("probes %d, %d or more", g, l+1), definition); err != nil {
				return err
			}
		}
	}
	return nil
}

// probeThink bounds the random pause between two probes of a client.
const probeThink = 15 * time.Millisecond

// run probes until finish is closed, and until nothing is open.
func (p *probes) run(ctx context.Context, finish <-chan struct{}) error {
	group, ctx := errgroup.WithContext(ctx)
	for n := range groups * clients {
		rng := rand.New(rand.NewPCG(p.seed, uint64(p.round*groups*clients+n)+uint64(p.company+1)<<32))
		group.Go(func() error {
			return gate.Until(ctx, finish, rng, probeThink, func(ctx context.Context) error {
				if err := p.act(ctx, rng, n, n%groups); err != nil {
					return fmt.Errorf("probe of group %d: %w", n%groups, err)
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// act makes one probe. A post is repeated until it has an answer, now and then it
// is given up instead; a read that has none tells nothing.
func (p *probes) act(ctx context.Context, rng *rand.Rand, client, group int) error {
	x := probe{group: group}
	switch draw := rng.IntN(100); {
	case draw < 45:
		x.kind, x.person, x.key = post, rng.IntN(people), rng.IntN(keys)
	case draw < 90:
		x.kind, x.level = count, rng.IntN(levels)
	default:
		x.kind, x.person = whois, rng.IntN(people)
	}
	if x.kind == post {
		return p.post(ctx, client, x, rng.IntN(10) == 0)
	}
	from := p.now()
	a, err := p.read(ctx, x)
	if errors.Is(err, surface.ErrNoAnswer) {
		time.Sleep(probePause)
		return nil
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work.Reads++
	p.note(client, x, a, from, p.now())
	return nil
}

// now is the history's clock.
func (p *probes) now() int64 { return int64(time.Since(p.began)) }

// note enters an operation into the history, which is locked.
func (p *probes) note(client int, x probe, a answer, from, to int64) {
	p.mu.history = append(p.mu.history, porcupine.Operation{ClientId: client, Input: x, Output: a, Call: from, Return: to})
}

// probePause is the time between two attempts.
const probePause = 50 * time.Millisecond

// post posts until there is an answer. All attempts are one operation: any of them
// may have been the one that counts, and none does once one is acknowledged.
func (p *probes) post(ctx context.Context, client int, x probe, giveUp bool) error {
	p.mu.Lock()
	p.mu.posted[x] = true
	p.mu.Unlock()
	user := map[string]string{"external_id": p.externalID(x.group, x.person)}
	body, err := json.Marshal(map[string]any{"event_type": probeType(x.group), "user": user, "idempotency_key": p.key(x)})
	if err != nil {
		return err
	}
	for from := p.now(); ; time.Sleep(probePause) {
		var told struct {
			Success   bool    `json:"success"`
			ProfileID string  `json:"profile_id"`
			Error     *string `json:"error"`
		}
		text, err := p.client.Once(ctx, surface.ByApp, "POST", "/api/v1/events", body)
		if err == nil {
			err = json.Unmarshal(text, &told)
		}
		switch to := p.now(); {
		case errors.Is(err, surface.ErrNoAnswer) && giveUp:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.work.GivenUp++
			p.note(client, x, answer{none: true}, from, never)
			return nil
		case errors.Is(err, surface.ErrNoAnswer) && ctx.Err() == nil:
			continue
		case err != nil:
			return fmt.Errorf("event %s: %w", p.key(x), err)
		case !told.Success:
			return fmt.Errorf("event %s was refused: %s", p.key(x), text)
		default:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.work.Posts++
			p.work.WaitMax = max(p.work.WaitMax, time.Duration(to-from))
			p.mu.acked[x] = true
			p.note(client, x, answer{profile: told.ProfileID}, from, to)
			return nil
		}
	}
}

// read asks for a count or a person once.
func (p *probes) read(ctx context.Context, x probe) (a answer, err error) {
	path := "/segments/" + p.segments[x.group][x.level]
	if x.kind == whois {
		path = "/profiles?external_id=" + p.externalID(x.group, x.person)
	}
	var told struct {
		ProfileID string `json:"profile_id"`
		Count     *int   `json:"count"`
		Status    string `json:"status"`
	}
	text, err := p.client.Once(ctx, surface.BySession, "GET", "/console/api/v1"+path, nil)
	var no *surface.Refusal
	switch {
	case x.kind == whois && errors.As(err, &no) && no.Status == http.StatusNotFound:
		return answer{}, nil
	case err != nil:
		return a, err
	}
	if err := json.Unmarshal(text, &told); err != nil {
		return a, fmt.Errorf("GET %s: %w: %.200s", path, err, text)
	}
	switch {
	case x.kind == whois && told.ProfileID == "", x.kind == count && told.Count == nil:
		return a, fmt.Errorf("GET %s answered %.200s", path, text)
	case x.kind == count:
		return answer{count: *told.Count}, nil
	}
	return answer{profile: told.ProfileID}, nil
}

// repostUnanswered posts again what has no answer.
func (p *probes) repostUnanswered(ctx context.Context) error {
	p.mu.Lock()
	var left []probe
	for x := range p.mu.posted {
		if !p.mu.acked[x] {
			left = append(left, x)
		}
	}
	p.mu.Unlock()
	for _, x := range left {
		if err := p.post(ctx, groups*clients, x, false); err != nil {
			return err
		}
	}
	return nil
}

// check reads everything once more, when all is well, checks the history and
// begins the next round.
func (p *probes) check(ctx context.Context, file string) error {
	for g := range groups {
		for l := range levels {
			x := probe{kind: count, group: g, level: l}
			from := p.now()
			a, err := p.read(ctx, x)
			if err != nil {
				return err
			}
			p.mu.Lock()
			p.note(groups*clients, x, a, from, p.now())
			p.mu.Unlock()
		}
	}
	if err := linearizable(p.base, p.mu.history, file); err != nil {
		return err
	}
	var events [groups][people]int
	for x := range p.mu.posted {
		events[x.group][x.person]++
	}
	for g := range groups {
		for _, n := range events[g] {
			for l := range min(n, levels) {
				p.base[g][l]++
			}
		}
	}
	p.clear()
	p.round++
	return nil
}

// keys visits the events of the round, all acknowledged.
func (p *probes) keys(visit func(key string, e *ledger.Event)) {
	for x := range p.mu.acked {
		visit(p.key(x), &ledger.Event{Type: probeType(x.group), Acked: true})
	}
}
