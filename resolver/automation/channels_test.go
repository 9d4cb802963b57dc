package automation

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// stepMessage is a message of the step under test, by the naive model.
type stepMessage struct {
	person  uint32
	channel int
}

// TestF1OmnichannelMatchesNaive sends people through a step of several channels, whose
// messages reach them or not, fail and continue, while who can be reached changes. A naive model
// says after each record which messages are queued, what is counted, and how many credits
// are left.
func TestF1OmnichannelMatchesNaive(t *testing.T) {
	seeds, next := 300, 0
	for seed := range seeds {
		next += omnichannelRun(t, rand.New(rand.NewPCG(uint64(seed), 17)))
	}
	if next < seeds {
		t.Errorf("only %d messages continued to a further channel", next)
	}
}

func omnichannelRun(t *testing.T, rng *rand.Rand) (next int) {
	t.Helper()
	const people = 6
	texts := map[string]string{"email": `"subject":"s","body":"b"`, "sms": `"text":"x"`, "whatsapp": `"text":"x"`, "push": `"title":"x"`}
	channels := []string{"email", "sms", "whatsapp", "push"}
	rng.Shuffle(len(channels), func(i, j int) { channels[i], channels[j] = channels[j], channels[i] })
	channels = channels[:1+rng.IntN(len(channels))]
	var parts []string
	for _, c := range channels {
		parts = append(parts, fmt.Sprintf(`{"channel":%q,%s}`, c, texts[c]))
	}
	w := newWorld(t, people)
	w.credits = int64(1 + rng.IntN(8))
	var reach [people][4]flows.Result
	change := func(p int) {
		for k := range reach[p] {
			reach[p][k] = []flows.Result{flows.Queued, flows.Queued, flows.NoAddress, flows.NotSubscribed, flows.Suppressed}[rng.IntN(5)]
		}
	}
	for p := range people {
		change(p)
	}
	w.reach = func(d *profile.Document, channel string) flows.Result {
		for p := range people {
			if bytes.Equal(d.Identifiers[0].Value, fmt.Appendf(nil, "u%d@x.io", p)) {
				return reach[p][slices.Index(channels, channel)]
			}
		}
		t.Fatal("the document of a profile that does not exist")
		return 0
	}
	id := w.live(`{"name":"x","trigger":{"type":"event","event":"viewed"},"reentry":"after_exit","steps":[{"id":"o","type":"omnichannel","channels":[` + strings.Join(parts, ",") + `],"next":null}]}`)
	var queued, want []stepMessage // queued and not reported yet, and those of a record
	counts := make([]ChannelCount, len(channels))
	credits, waits := w.credits, map[uint32]bool{} // profiles that stand at the step for want of credits
	skip := func(k int, r flows.Result) {
		if counts[k].Skipped == nil {
			counts[k].Skipped = map[flows.Result]uint64{}
		}
		counts[k].Skipped[r]++
	}
	send := func(p uint32, k int) {
		counts[k].Queued++
		want = append(want, stepMessage{p, k})
		if channels[k] == "email" {
			credits--
		}
	}
	came := 0
	for range 60 {
		want = nil
		switch p := uint32(rng.IntN(people)); {
		case rng.IntN(4) == 0:
			change(int(p))
			continue
		case rng.IntN(3) > 0 && len(queued) > 0:
			x := queued[rng.IntN(len(queued))]
			queued = slices.DeleteFunc(queued, func(y stepMessage) bool { return y == x })
			counts[x.channel].Failed++
			for k := x.channel + 1; k < len(channels); k++ {
				r := reach[x.person][k]
				if r == flows.Queued && channels[k] == "email" && credits == 0 {
					r = flows.Refused
				}
				if r == flows.Queued {
					send(x.person, k)
					next++
					break
				}
				skip(k, r)
			}
			w.effects = nil
			w.record(func(*feature.Tx) { w.flows.NextChannel(id, "o", x.person, channels[x.channel], nil) })
		case credits == 0 || len(waits) > 0 || slices.ContainsFunc(queued, func(x stepMessage) bool { return x.person == p }):
			continue // the flow is paused, or the message of before is still under way
		default:
			var skipped []flows.Result
			k := 0
			for k < len(channels) && reach[p][k] != flows.Queued {
				skipped = append(skipped, reach[p][k])
				k++
			}
			for i, r := range skipped {
				skip(i, r)
			}
			if k < len(channels) {
				send(p, k)
			}
			came++
			w.effects = nil
			w.event("viewed", p)
		}
		queued = append(queued, want...)
		var got []stepMessage
		for _, e := range w.effects {
			var x stepMessage
			var channel string
			if n, _ := fmt.Sscanf(e, "mail s to %d", &x.person); n == 1 {
				channel = "email"
			} else if n, _ := fmt.Sscanf(e, "%s to %d", &channel, &x.person); n != 2 {
				continue
			}
			if x.channel = slices.Index(channels, channel); x.channel >= 0 {
				got = append(got, x)
			}
		}
		w.effects = nil
		if !slices.Equal(got, want) {
			t.Fatalf("channels %v: queued %v, the model says %v", channels, got, want)
		}
		if w.credits != credits {
			t.Fatalf("%d credits are left, the model says %d", w.credits, credits)
		}
		if came == 0 {
			continue
		}
		if got := w.state(id).Counts.Steps[0].Channels; !bytes.Equal(must.JSON(got), must.JSON(counts)) {
			t.Fatalf("channels %v: counted %s, the model says %s", channels, must.JSON(got), must.JSON(counts))
		}
		if rng.IntN(8) == 0 {
			before := w.hash()
			w.reload()
			if !bytes.Equal(w.hash(), before) {
				t.Fatal("R1: a state that is loaded differs")
			}
		}
	}
	return next
}
