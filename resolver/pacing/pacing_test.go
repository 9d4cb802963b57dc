package pacing

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/internal/zones"
	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// message is one that was claimed, as the naive account of them has it.
type message struct {
	atMs    int64
	channel string
	id      MessageID
}

// naive judges messages by looking at each of all that were ever claimed, and at clocks minute by
// minute.
type naive struct {
	limits *Limits
	had    map[uint32][]message
	clocks map[string]time.Time // found before
}

// quietUntil looks at a person's clocks from the day before on. Quiet hours begin at the first
// minute of a day at which clocks show From or later, and end likewise.
func (n *naive) quietUntil(zone *time.Location, nowMs int64) int64 {
	q := n.limits.QuietHours
	first := func(day time.Time, clock string) time.Time {
		want := day.Format("2006-01-02 ") + clock
		if t, ok := n.clocks[zone.String()+want]; ok {
			return t
		}
		t := day.Add(-27 * time.Hour)
		for t.In(zone).Format("2006-01-02 15:04") < want {
			t = t.Add(time.Minute)
		}
		n.clocks[zone.String()+want] = t
		return t
	}
	now := time.UnixMilli(nowMs)
	y, m, d := now.In(zone).Date()
	for _, back := range []int{1, 0} {
		day := time.Date(y, m, d-back, 0, 0, 0, 0, time.UTC)
		from, end := first(day, q.From), day
		if q.To <= q.From {
			end = day.AddDate(0, 0, 1)
		}
		if to := first(end, q.To); !now.Before(from) && now.Before(to) {
			return to.UnixMilli()
		}
	}
	return 0
}

func (n *naive) ask(nowMs int64, o uint32, zone *time.Location, channel string, id MessageID) Decision {
	if q := n.limits.QuietHours; q != nil && (len(q.Channels) == 0 || slices.Contains(q.Channels, channel)) {
		if until := n.quietUntil(zone, nowMs); until != 0 && q.Then == ThenSkip {
			return Decision{Reason: ReasonQuietHours}
		} else if until != 0 {
			return Decision{UntilMs: until}
		}
	}
	for _, c := range n.limits.Caps {
		if c.Channel != "" && c.Channel != channel {
			continue
		}
		count, self := 0, false
		for _, x := range slices.Backward(n.had[o]) {
			if x.id == id && !self {
				self = true // it does not keep itself from going out
			} else if x.atMs > nowMs-int64(c.Hours)*hourMs && (c.Channel == "" || c.Channel == x.channel) {
				count++
			}
		}
		if count >= c.Messages {
			return Decision{Reason: ReasonFrequencyCap}
		}
	}
	return Decision{}
}

func (n *naive) without(o uint32, id MessageID) {
	for i, x := range slices.Backward(n.had[o]) {
		if x.id == id {
			n.had[o] = slices.Delete(n.had[o], i, i+1)
			return
		}
	}
}

// zoneTexts are what profiles say of their zones, with what is to be made of it where the
// account's is Europe/Berlin.
var zoneTexts = []struct{ geo, attributes, zone string }{
	{"", "", "Europe/Berlin"}, {`{"timezone":"America/New_York"}`, "", "America/New_York"}, {"", `{"timezone":"Asia/Kathmandu"}`, "Asia/Kathmandu"},
	{`{"timezone":"Mars/Olympus"}`, `{"timezone":"Australia/Lord_Howe"}`, "Australia/Lord_Howe"}, {`{"timezone":5}`, `{"timezone":null}`, "Europe/Berlin"},
	{`{"timezone":"Local"}`, `{"timezone":""}`, "Europe/Berlin"}, {`{"timezone":"Pacific/Apia"}`, `{"timezone":"UTC"}`, "Pacific/Apia"},
	{`{"timezone":"\u0055TC"}`, "", "UTC"}, {`{"timezone":"Africa/Casablanca"}`, "", "Africa/Casablanca"},
}

func randomLimits(rng *rand.Rand) *Limits {
	l := &Limits{Timezone: "Europe/Berlin"}
	clock := func() string { return fmt.Sprintf("%02d:%02d", rng.IntN(24), 10*rng.IntN(6)) }
	if q := (&QuietHours{From: clock(), To: clock(), Then: []string{"", ThenWait, ThenSkip}[rng.IntN(3)]}); rng.IntN(4) > 0 && q.From != q.To {
		if rng.IntN(2) == 0 {
			q.Channels = []string{"sms", "push"}
		}
		l.QuietHours = q
	}
	for range rng.IntN(4) {
		c := Cap{Messages: 1 + rng.IntN(4), Hours: 1 + rng.IntN(72)}
		if rng.IntN(2) == 0 {
			c.Channel = Channels[rng.IntN(3)]
		}
		l.Caps = append(l.Caps, c)
	}
	return l
}

// TestR1LimitsMatchNaive: messages, reports that some were not sent, merges, erasures and
// restarts at random, around changes of clocks, against a list of all that was claimed.
func TestR1LimitsMatchNaive(t *testing.T) {
	const people = 6
	changes := []time.Time{
		time.Date(2024, 3, 31, 1, 0, 0, 0, time.UTC), time.Date(2024, 10, 27, 1, 0, 0, 0, time.UTC), // Berlin
		time.Date(2024, 11, 3, 6, 0, 0, 0, time.UTC), time.Date(2024, 10, 5, 15, 30, 0, 0, time.UTC), // New York, Lord Howe
		time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC), time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC), // Apia leaves out a day; none
	}
	var decisions, held, skipped, capped int
	for seed := range testlevel.Count[uint64](20, 60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		sets := profile.NewOrdinalSets()
		w := featuretest.New(t, nil, func(store *state.Store) *State { return New(featuretest.Account, store, sets) })
		w.Now = changes[rng.IntN(len(changes))].UnixMilli() - 3*24*hourMs
		n := &naive{limits: randomLimits(rng), had: map[uint32][]message{}, clocks: map[string]time.Time{}}
		if r := n.limits.Validate("sending_limits"); r != nil && len(n.limits.Caps) < 2 {
			t.Fatal(r)
		}
		w.State.Configure(n.limits)
		says := make([]int, people)
		for i := range says {
			says[i] = rng.IntN(len(zoneTexts))
		}
		for range 250 {
			w.Now += rng.Int64N(2 * hourMs)
			w.Now -= w.Now % 1000
			o, id := rng.Uint32N(people), MessageID(1+rng.IntN(40))
			switch rng.IntN(40) {
			case 0:
				winner := rng.Uint32N(people)
				if winner == o {
					continue
				}
				w.State.Merge(w.Tx(), winner, o)
				n.had[winner] = append(n.had[winner], n.had[o]...)
				slices.SortStableFunc(n.had[winner], func(x, y message) int {
					return cmp.Or(cmp.Compare(x.atMs, y.atMs), cmp.Compare(x.id, y.id))
				})
				delete(n.had, o)
			case 1:
				if err := w.State.Erase(w.Tx(), o, 99); err != nil {
					t.Fatal(err)
				}
				delete(n.had, o)
			case 2:
				w.State = New(featuretest.Account, w.Store, sets)
				w.State.Configure(n.limits)
			case 3:
				if err := w.State.Uncount(o, id); err != nil {
					t.Fatal(err)
				}
				n.without(o, id)
			default:
				x := zoneTexts[says[o]]
				d := &profile.Document{}
				d.Geo, d.Attributes = []byte(x.geo), []byte(x.attributes)
				zone, _ := zones.Load(x.zone)
				if got := w.State.Zone(d); got != zone {
					t.Fatalf("seed %d: the zone of %+v is %s", seed, x, got)
				}
				channel := Channels[rng.IntN(4)]
				got, err := w.State.Ask(w.Now, o, d, channel, id)
				if err != nil {
					t.Fatal(err)
				}
				if want := n.ask(w.Now, o, zone, channel, id); got != want {
					kept, _ := w.State.stored(o)
					t.Logf("message %d; kept %+v, had %+v", id, kept, n.had[o])
					t.Fatalf("seed %d: %s to %d in %s at %s: %+v, expected %+v; limits %+v %+v", seed, channel, o, zone, time.UnixMilli(w.Now).UTC(), got, want, n.limits, n.limits.QuietHours)
				}
				decisions++
				switch got {
				case Decision{Reason: ReasonQuietHours}:
					skipped++
				case Decision{Reason: ReasonFrequencyCap}:
					capped++
				case Decision{}:
					n.without(o, id)
					n.had[o] = append(n.had[o], message{w.Now, channel, id})
					if err := w.State.Count(w.Now, o, channel, id); err != nil {
						t.Fatal(err)
					}
				default:
					held++
				}
			}
			w.Hash()
		}
	}
	if held == 0 || skipped == 0 || capped == 0 || held+skipped+capped == decisions {
		t.Errorf("of %d messages %d were held, %d skipped and %d capped", decisions, held, skipped, capped)
	}
}

// TestWhatIsKeptIsBounded: of each channel the newest are kept, and what is older than all
// windows goes while others are sent messages.
func TestWhatIsKeptIsBounded(t *testing.T) {
	sets := profile.NewOrdinalSets()
	w := featuretest.New(t, nil, func(store *state.Store) *State { return New(featuretest.Account, store, sets) })
	count := func(o uint32, channel string, id int) {
		t.Helper()
		if err := w.State.Count(w.Now, o, channel, MessageID(id)); err != nil {
			t.Fatal(err)
		}
	}
	count(1, "email", 1)
	if !sets.Members(setCounted).IsEmpty() {
		t.Fatal("an account without caps keeps messages")
	}
	w.State.Configure(&Limits{Caps: []Cap{{Messages: MaxMessages, Hours: 10}}})
	for i := range 3 * MaxMessages {
		for k, channel := range Channels {
			count(1, channel, i*len(Channels)+k)
		}
	}
	if b, err := w.Store.Entity(w.State.key(1)); err != nil || len(b) != 1+entryBytes*maxKept {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	list, err := w.State.stored(1)
	if err != nil || list[0].id != MessageID(2*MaxMessages*len(Channels)) {
		t.Fatalf("the oldest is %+v, %v", list[0], err)
	}
	w.Now += 10 * hourMs
	count(7, "sms", 1)
	if kept := sets.Members(setCounted).ToArray(); !slices.Equal(kept, []uint32{7}) {
		t.Fatalf("kept are the messages of %v", kept)
	}
	w.Hash()
}

// TestBadLimits: what is wrong with limits is named with its remedy.
func TestBadLimits(t *testing.T) {
	quiet := func(from, to, then string, channels ...string) Limits {
		return Limits{QuietHours: &QuietHours{From: from, To: to, Then: then, Channels: channels}}
	}
	caps := func(list ...Cap) Limits { return Limits{Caps: list} }
	for _, c := range []struct {
		limits Limits
		want   string
	}{
		{Limits{}, ""}, {quiet("22:00", "08:00", ""), ""}, {quiet("00:00", "23:59", ThenSkip, "sms"), ""}, {caps(Cap{"", 1, 24}, Cap{"sms", 1, 24}, Cap{"sms", 3, 168}), ""},
		{Limits{Timezone: "Berlin"}, `l.timezone Input should be the name of a time zone of the IANA database, such as "Europe/Berlin"`},
		{quiet("", "08:00", ""), `l.quiet_hours.from Input should be a time of the day from "00:00" to "23:59"`},
		{quiet("22:00:00", "08:00", ""), `l.quiet_hours.from Input should be a time of the day from "00:00" to "23:59"`},
		{quiet("22:00", "24:00", ""), `l.quiet_hours.to Input should be a time of the day from "00:00" to "23:59"`},
		{quiet("08:00", "08:00", ""), "l.quiet_hours.to Input should be another time than from; leave quiet_hours out, or set them to null, for none"},
		{quiet("22:00", "08:00", "drop"), "l.quiet_hours.then Input should be wait or skip"},
		{quiet("22:00", "08:00", "", "sms", "fax"), "l.quiet_hours.channels[1] Input should be email, sms, whatsapp, im, push or in_app"},
		{quiet("22:00", "08:00", "", "sms", "sms"), "l.quiet_hours.channels[1] Input should be named once; sms stands there twice"},
		{caps(Cap{"fax", 1, 24}), "l.frequency_caps[0].channel Input should be email, sms, whatsapp, im, push or in_app; left out, messages on all channels count together"},
		{caps(Cap{"", 0, 24}), "l.frequency_caps[0].messages Input should be a whole number from 1 to 100"},
		{caps(Cap{"", 101, 24}), "l.frequency_caps[0].messages Input should be a whole number from 1 to 100"},
		{caps(Cap{"", 1, 0}), "l.frequency_caps[0].hours Input should be a whole number from 1 to 8784"},
		{caps(Cap{"", 1, 24}, Cap{"", 2, 24}), "l.frequency_caps[1].hours Input should be another number than that of frequency_caps[0], which is of the same channel; keep the lower one"},
		{caps(make([]Cap, MaxCaps+1)...), "l.frequency_caps Input should be at most 20 caps"},
	} {
		got := ""
		if r := c.limits.Validate("l"); r != nil {
			got = r.Message
		}
		if got != c.want {
			t.Errorf("%+v: %q, expected %q", c.limits, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode([]entry{{1, 0, OfCampaign(3)}, {2, 5, OfItem(7, 1)}}))
	f.Add([]byte{entryVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := decode(b)
		if err == nil && !bytes.Equal(encode(list), b) {
			t.Fatalf("%x became %+v", b, list)
		}
	})
}
