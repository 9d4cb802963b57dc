package campaigns

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/messaging/whatsapp"
)

// omni makes a campaign of several channels.
func (w *world) omni(channels ...string) Campaign {
	w.t.Helper()
	c := Campaign{Name: "n", Channel: ChannelOmni, Message: Message{Subject: "s", Body: "b"}}
	for _, channel := range channels {
		m := ChannelMessage{Channel: channel}
		if channel != mediumEmail {
			m.Body = "b"
		}
		c.Channels = append(c.Channels, m)
	}
	return w.saved(Save{Campaign: c})
}

// contents are those of a campaign of several channels.
func contents(c Campaign) (out []Content) {
	for i := range c.Channels {
		out = append(out, Content{Text: "t", Sender: "news@x.io", Links: []string{fmt.Sprint("https://", i)}})
	}
	return out
}

// TestChannelsAreChecked: what is wrong with the channels of a campaign is reported by
// their fields, and changes nothing.
func TestChannelsAreChecked(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		want     string
		channel  int
		channels []ChannelMessage
	}{
		{"channels Input should be left out where channel is not 1", ChannelSingle, []ChannelMessage{{Channel: "sms", Body: "b"}}},
		{"channels Input should have at most 6 entries", ChannelOmni, make([]ChannelMessage, 7)},
		{"channels[0].channel Input should be email, sms, whatsapp, im, push or in_app", ChannelOmni, []ChannelMessage{{Channel: "fax"}}},
		{"channels[1].channel Input should name each channel once; sms stands there twice", ChannelOmni, []ChannelMessage{{Channel: "sms"}, {Channel: "sms"}}},
		{"channels[0].channel email Input should stand alone", ChannelOmni, []ChannelMessage{{Channel: "email", Body: "b"}}},
		{"channels[0].subject and link should be left out", ChannelOmni, []ChannelMessage{{Channel: "sms", Subject: "s"}}},
		{"channels[0].subject and link should be left out", ChannelOmni, []ChannelMessage{{Channel: "whatsapp", Link: "https://x.io"}}},
		{"channels[0].push Input should be left out where channel is not push", ChannelOmni, []ChannelMessage{{Channel: "im", Push: &PushOptions{}}}},
		{"channels[0].whatsapp Input should be left out where channel is not whatsapp", ChannelOmni, []ChannelMessage{{Channel: "im", WhatsApp: &whatsapp.Template{Name: "n"}}}},
		{"channels[0].sender Input should be left out where channel is not sms or im", ChannelOmni, []ChannelMessage{{Channel: "push", Sender: "x"}}},
		{"channels[0].sender must be one line", ChannelOmni, []ChannelMessage{{Channel: "sms", Sender: "a\nb"}}},
		{"channels[0].subject must have at most 998 bytes", ChannelOmni, []ChannelMessage{{Channel: "push", Subject: strings.Repeat("s", 999)}}},
		{"channels[0].body must have at most 4096 bytes", ChannelOmni, []ChannelMessage{{Channel: "sms", Body: strings.Repeat("b", 4097)}}},
		{"channels[0].whatsapp.template Field required", ChannelOmni, []ChannelMessage{{Channel: "whatsapp", WhatsApp: &whatsapp.Template{Language: "en"}}}},
		{"channels[0].whatsapp Input should be left out where there is a body", ChannelOmni, []ChannelMessage{{Channel: "whatsapp", Body: "b", WhatsApp: &whatsapp.Template{Name: "n"}}}},
		{"channels[1].push.image Input should be an https URL", ChannelOmni, []ChannelMessage{{Channel: "sms"}, {Channel: "push", Push: &PushOptions{Image: "http://x.io"}}}},
	} {
		w.refuses(c.want, CommandSave, Save{Campaign: Campaign{Name: "n", Channel: c.channel, Type: TypeEmail, Date: "2026-01-01", Channels: c.channels}})
	}
	if len(w.state.campaigns) != 0 {
		t.Errorf("%d campaigns", len(w.state.campaigns))
	}
	c := w.omni("push", "sms")
	for _, start := range []Start{
		{Channels: []string{"push", "sms"}, Variants: contents(c)[:1]}, {Channels: []string{"push", "sms"}, Variants: contents(c), AB: &ABTest{}},
		{Channels: []string{"sms", "push"}, Variants: contents(c)}, {Variants: contents(c)},
	} {
		start.ID, start.BatchSize = c.ID, 1
		w.refuses("the campaign's channels are others than those", CommandStart, start)
	}
}

// oracle is a campaign of several channels in the plainest way: what each person got, and
// the channel that they are being sent to on.
type oracle struct {
	channels []string
	got      map[uint32]string
	pending  map[uint32]int
	// unsure is the channel of those who were pending when a run was stopped.
	unsure   map[uint32]string
	credits  int64
	recorded int // what became of messages that were handed over, or tried to be
}

// choose is the first channel from one on that reaches a person.
func (o *oracle) choose(h *fakeHost, person uint32, from int) int {
	for i := from; i < len(o.channels); i++ {
		if h.unreachable[o.channels[i]][person] == "" {
			return i
		}
	}
	return -1
}

// claim is the channel on which a person is claimed: that of a message which may have gone
// out before, or the first.
func (o *oracle) claim(h *fakeHost, person uint32) (channel int, again bool) {
	medium, again := o.unsure[person]
	if !again {
		return o.choose(h, person, 0), false
	}
	if i := slices.Index(o.channels, medium); i >= 0 && h.unreachable[medium][person] == "" {
		return i, true
	}
	return -1, true
}

// stop notes the pending recipients of a run that is stopped.
func (o *oracle) stop() {
	for person, channel := range o.pending {
		o.unsure[person] = o.channels[channel]
	}
}

// TestChannelsMatchNaive sends campaigns of several channels to people whom channels reach
// or not, with failures of all kinds, repeats of reports, resumes, stops and new runs, and
// compares who got what with a naive model: everybody one message, on the first channel that
// reaches them, and each credit for an e-mail that was sent.
func TestChannelsMatchNaive(t *testing.T) {
	seeds := testlevel.Count(60, 300)
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { channelsMatchNaive(t, rand.New(rand.NewPCG(uint64(seed), 1))) })
	}
}

func channelsMatchNaive(t *testing.T, rnd *rand.Rand) {
	w := newWorld(t)
	const people = 40
	all := make([]uint32, people)
	for i := range all {
		all[i] = uint32(i)
	}
	list := w.list("all", all...)
	w.host.credits = int64(rnd.IntN(people))
	w.host.unreachable = map[string]map[uint32]string{}
	for _, channel := range channelNames {
		w.host.unreachable[channel] = map[uint32]string{}
	}
	change := func() {
		for range rnd.IntN(people) {
			w.host.unreachable[channelNames[rnd.IntN(len(channelNames))]][all[rnd.IntN(people)]] = []string{"", "unsubscribed"}[rnd.IntN(2)]
		}
	}
	shuffled := func() []string {
		out := slices.Clone(channelNames[:])
		rnd.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
		return out[:2+rnd.IntN(4)]
	}
	c := w.omni(shuffled()...)
	o := oracle{got: map[uint32]string{}, unsure: map[uint32]string{}, credits: w.host.credits}
	for run := 1; run <= 4; run++ {
		change()
		if run > 1 && rnd.IntN(2) == 0 {
			next := w.omni(shuffled()...)
			next.ID = c.ID
			c = w.saved(Save{Campaign: next})
		}
		o.channels, o.pending = c.Media(), map[uint32]int{}
		w.do(CommandStart, Start{ID: c.ID, Plan: Plan{ListIDs: []string{list}, BatchSize: 1 + rnd.IntN(8)}, Variants: contents(c), Channels: c.ChannelNames(), CountsSent: true}, nil)
		o.runs(t, w, rnd, c, run, change)
		o.compare(t, w, c)
	}
}

// runs carries a run out until it is over.
func (o *oracle) runs(t *testing.T, w *world, rnd *rand.Rand, c Campaign, run int, change func()) {
	attempt := func(r Recipient) *Recipient {
		medium := o.channels[r.Variant]
		if o.pending[r.Ordinal] != r.Variant {
			t.Fatalf("person %d is sent to on %s, expected %s", r.Ordinal, medium, o.channels[o.pending[r.Ordinal]])
		}
		result := Result{ID: c.ID, Run: run, Ordinal: r.Ordinal, Variant: r.Variant, Reason: "a reason"}
		result.Result = []string{ResultSent, ResultSent, ResultSkipped, ResultBounced, "failed"}[rnd.IntN(5)]
		result.Unreachable = result.Result != ResultSent && !r.Again && rnd.IntN(4) > 0
		result.Handed = !result.Unreachable && result.Result == "failed" && rnd.IntN(2) == 0
		if result.Result == ResultBounced {
			w.host.unreachable[medium][r.Ordinal] = "bounced"
		}
		if rnd.IntN(8) == 0 {
			change()
		}
		delete(o.pending, r.Ordinal)
		if result.Result != ResultSkipped {
			o.recorded++
		}
		next := -1
		switch {
		case result.Result == ResultSent:
			o.got[r.Ordinal] = medium
		case result.Unreachable:
			next = o.choose(w.host, r.Ordinal, r.Variant+1)
		}
		if medium == mediumEmail && result.Result != ResultSent && !result.Handed {
			o.credits++
		}
		stops := next >= 0 && o.channels[next] == mediumEmail && o.credits < 1
		if next >= 0 && !stops {
			if o.pending[r.Ordinal] = next; o.channels[next] == mediumEmail {
				o.credits--
			}
		}
		var reply ResultReply
		for range 1 + rnd.IntN(2) { // a report whose answer was lost comes again
			reply = ResultReply{}
			w.do(CommandResult, result, &reply)
		}
		if (reply.Next != nil) != (next >= 0 && !stops) || reply.Next != nil && *reply.Next != (Recipient{Ordinal: r.Ordinal, Variant: next}) {
			t.Fatalf("next is %v, expected %d of %v (stops: %v)", reply.Next, next, o.channels, stops)
		}
		return reply.Next
	}
	for w.state.runs[c.ID].Busy() {
		switch rnd.IntN(12) {
		case 0:
			change()
		case 1:
			w.do(CommandFinish, Finish{ID: c.ID, Run: run, Stopped: "enough"}, nil)
			for _, channel := range o.pending {
				if o.channels[channel] == mediumEmail {
					o.credits++
				}
			}
			o.stop()
			return
		case 2: // a stop of the service, and a start
			var reply BatchReply
			w.do(CommandResume, Batch{ID: c.ID, Run: run}, &reply)
			if len(reply.Recipients) != len(o.pending) {
				t.Fatalf("%d are resumed, expected %d", len(reply.Recipients), len(o.pending))
			}
			for _, r := range reply.Recipients {
				if !r.Again {
					t.Fatalf("person %d is resumed as if nothing had gone out", r.Ordinal)
				}
			}
			o.work(reply.Recipients, rnd, attempt, w, c)
		default:
			b := w.batch(c.ID, run)
			for _, r := range b.Recipients {
				want, again := o.claim(w.host, r.Ordinal)
				if o.got[r.Ordinal] != "" || want != r.Variant || again != r.Again {
					t.Fatalf("person %d is claimed on %d (%v), expected %d (%v) of %v, after %q", r.Ordinal, r.Variant, r.Again, want, again, o.channels, o.got[r.Ordinal])
				}
				delete(o.unsure, r.Ordinal)
				if o.pending[r.Ordinal] = want; o.channels[want] == mediumEmail {
					o.credits--
				}
			}
			for person := range o.unsure { // those who were looked at and passed over
				if !w.state.members(&c, setAudience).Contains(person) {
					delete(o.unsure, person)
				}
			}
			o.work(b.Recipients, rnd, attempt, w, c)
			if b.Left == 0 && len(o.pending) == 0 && w.state.runs[c.ID].Busy() {
				w.do(CommandFinish, Finish{ID: c.ID, Run: run}, nil)
			}
		}
	}
	// What was pending when the run stopped for want of credits stays so, and paid.
	for _, channel := range o.pending {
		if o.channels[channel] == mediumEmail {
			o.credits++ // given back at the next start
		}
	}
	o.stop()
}

// work sends to recipients, to some of them not yet.
func (o *oracle) work(list []Recipient, rnd *rand.Rand, attempt func(Recipient) *Recipient, w *world, c Campaign) {
	for _, r := range list {
		if rnd.IntN(6) == 0 {
			continue
		}
		for next := &r; next != nil && w.state.runs[c.ID].Busy(); {
			next = attempt(*next)
		}
	}
}

// compare compares who got what, the counts, and the credits.
func (o *oracle) compare(t *testing.T, w *world, c Campaign) {
	t.Helper()
	want := map[string]uint64{}
	for _, medium := range o.got {
		want[medium]++
	}
	got := map[string]uint64{}
	var sent uint64
	for _, n := range w.state.ByChannel(c) {
		if n.Sent > 0 {
			got[n.Channel] = n.Sent
		}
		sent += n.Sent
	}
	if !maps.Equal(got, want) || w.state.Numbers(c).Sent != sent {
		t.Fatalf("sent %v, %d in all; expected %v", got, w.state.Numbers(c).Sent, want)
	}
	for person, medium := range o.got {
		if !w.state.members(&c, channelSet(medium, setSent)).Contains(person) {
			t.Fatalf("person %d got it by %s, and is not among those", person, medium)
		}
	}
	if len(w.host.recorded) != o.recorded {
		t.Fatalf("%d results are on record, expected %d", len(w.host.recorded), o.recorded)
	}
	r := w.state.runs[c.ID]
	counted := r.Sent + r.Failed + w.state.members(&c, setPending).GetCardinality() + w.state.members(&c, setAudience).GetCardinality()
	for _, n := range r.Skipped {
		counted += uint64(n)
	}
	if counted != r.Total {
		t.Fatalf("%d of %d people are accounted for: %+v", counted, r.Total, r)
	}
	if spare := w.state.pendingEmails(&c, r) - r.Returned; o.credits != w.host.credits+int64(spare) {
		t.Fatalf("%d credits and %d of those pending, expected %d", w.host.credits, spare, o.credits)
	}
	w.checked()
}

// TestClicksOfChannelsAreApart: the links of each channel are counted by themselves.
func TestClicksOfChannelsAreApart(t *testing.T) {
	w := newWorld(t)
	c := w.omni("push", "sms")
	w.host.unreachable = map[string]map[uint32]string{"push": {2: "no device"}}
	w.do(CommandStart, Start{ID: c.ID, Plan: Plan{ListIDs: []string{w.list("l", 1, 2)}, BatchSize: 9}, Variants: contents(c), Channels: c.ChannelNames()}, nil)
	for _, r := range w.batch(c.ID, 1).Recipients {
		w.do(CommandResult, Result{ID: c.ID, Run: 1, Ordinal: r.Ordinal, Variant: r.Variant, Result: ResultSent}, nil)
		w.state.CountEngagement(c.ID, r.Ordinal, c.Media()[r.Variant], 0, Clicked, 0)
	}
	w.state.CountEngagement(c.ID, 2, "sms", 0, Clicked, 0)
	if r := w.state.runs[c.ID]; !reflect.DeepEqual(r.ByLink, []uint64{1, 2}) {
		t.Errorf("clicks by link: %v", r.ByLink)
	}
	n := w.state.ByChannel(c)
	if n[0].Skipped["no device"]++; w.state.ByChannel(c)[0].Skipped["no device"] != 1 {
		t.Error("a reader has the state's own counts")
	}
	n[0].Skipped["no device"]--
	if len(n) != 2 || n[0].Clicked != 1 || n[1].Clicked != 1 || n[0].Skipped["no device"] != 1 || n[1].Sent != 1 {
		t.Errorf("%+v", n)
	}
	// Sent again on channels in another order, clicks stay with their links, and links of
	// messages that went out before lead where they did.
	w.do(CommandFinish, Finish{ID: c.ID, Run: 1}, nil)
	c.Channels = append([]ChannelMessage{{Channel: "im", Body: "b"}}, c.Channels[1], c.Channels[0])
	c = w.saved(Save{Campaign: c})
	w.do(CommandStart, Start{ID: c.ID, Plan: Plan{ListIDs: []string{"l"}, BatchSize: 9}, Variants: contents(c), Channels: c.ChannelNames()}, nil)
	if r := w.state.runs[c.ID]; !reflect.DeepEqual(r.ByLink, []uint64{0, 2, 1}) || w.state.VariantOn(c.ID, "sms", 0) != 1 || w.state.VariantOn(c.ID, "email", 0) != -1 {
		t.Errorf("clicks by link: %v", r.ByLink)
	}
	w.state.CountEngagement(c.ID, 2, "email", 0, Clicked, 0) // a channel that is none any more
}

// TestMergedRecipientsKeepTheirChannels: two people of a batch who become one are claimed on
// channels of their own, and what became of each message counts for its own.
func TestMergedRecipientsKeepTheirChannels(t *testing.T) {
	w := newWorld(t)
	c := w.omni("sms", "email")
	w.host.unreachable = map[string]map[uint32]string{"sms": {2: "no phone"}, "email": {1: "no e-mail"}}
	w.do(CommandStart, Start{ID: c.ID, Plan: Plan{ListIDs: []string{w.list("l", 1, 2)}, BatchSize: 9}, Variants: contents(c), Channels: c.ChannelNames()}, nil)
	w.batch(c.ID, 1)
	w.host.root = map[uint32]uint32{1: 2}
	w.do(CommandResult, Result{ID: c.ID, Run: 1, Ordinal: 1, Result: ResultSent}, nil)
	w.do(CommandResult, Result{ID: c.ID, Run: 1, Ordinal: 2, Variant: 1, Result: ResultSkipped, Reason: AlreadySent}, nil)
	n := w.state.ByChannel(c)
	if r := w.state.runs[c.ID]; w.host.credits != 1000 || r.Sent != 1 || r.Skipped[AlreadySent] != 1 || n[0].Sent != 1 || n[1].Sent != 0 {
		t.Errorf("%d credits, %+v, %+v", w.host.credits, r, n)
	}
	w.checked()
}

// TestMergedRecipientsStayOnTheirChannel: a message may have gone out when the run was
// stopped. Then its recipient merges with a profile that the next run reads first: that run
// must not choose another channel.
func TestMergedRecipientsStayOnTheirChannel(t *testing.T) {
	for _, was := range []uint32{1, 2} { // the recipient; profile 1 is merged into 2
		w := newWorld(t)
		c := w.omni("sms", "email")
		start := func(list string) {
			w.do(CommandStart, Start{ID: c.ID, Plan: Plan{ListIDs: []string{list}, BatchSize: 9}, Variants: contents(c), Channels: c.ChannelNames()}, nil)
		}
		start(w.list("l", was))
		w.batch(c.ID, 1)
		w.do(CommandFinish, Finish{ID: c.ID, Run: 1, Stopped: "why"}, nil)
		w.host.root = map[uint32]uint32{1: 2}
		w.host.unreachable = map[string]map[uint32]string{"sms": {2: "no phone"}}
		start(w.list("both", 1, 2))
		if list := w.batch(c.ID, 2).Recipients; len(list) > 0 {
			t.Errorf("%d may have been sent a text, and now %+v", was, list)
		}
		if r := w.state.runs[c.ID]; r.Skipped[NoChannel] != 1 {
			t.Errorf("%+v", r.Skipped)
		}
		w.checked()
	}
}

// TestStartWithOlderLinks: a start whose contents were made before another run is refused, since
// its links would take the place of that run's.
func TestStartWithOlderLinks(t *testing.T) {
	w := newWorld(t)
	c := w.omni("push", "sms")
	start := Start{ID: c.ID, Plan: Plan{ListIDs: []string{w.list("l", 1)}, BatchSize: 9}, Variants: contents(c), Channels: c.ChannelNames(), KeptLinks: &KeptLinks{Counts: []int{1, 1}}}
	refusal, err := Commands[CommandStart](w.state, w.tx(), must.JSON(start))
	if err != nil || refusal == nil || refusal.Field != "kept_links" || w.state.Started(c.ID) {
		t.Fatalf("a start that knows of a run that was not: %v, %v", refusal, err)
	}
	start.KeptLinks = &KeptLinks{}
	w.do(CommandStart, start, nil)
	if r := w.state.runs[c.ID]; !r.OwnClicks {
		t.Errorf("%+v", r)
	}
}
