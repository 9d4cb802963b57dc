package resolver

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// reachOracle judges a profile by what is answered of it.
func reachOracle(p *view.Profile, requireOptIn bool) (channels []string) {
	for _, channel := range []string{"email", "sms", "whatsapp", "im", "push", "in_app"} {
		status := p.Consent(channel).Status
		address := p.Newest(IdentityPhone) != ""
		asked := requireOptIn
		switch channel {
		case "email":
			address = p.Newest(IdentityEmail) != ""
		case "push":
			address = len(p.Devices) > 0
		case "in_app":
			address, asked = p.Newest(IdentityEmail) != "" || p.Newest(IdentityExternalID) != "", false
		default:
			asked = true
		}
		if address && p.SuppressionReason(channel) == "" && (status == "subscribed" || status == "never_subscribed" && !asked) {
			channels = append(channels, channel)
		}
	}
	return channels
}

// compareReach compares the sets of reachable profiles with a look at all profiles, and
// with what campaigns would do.
func compareReach(t *testing.T, m *Machine) {
	t.Helper()
	v := m.View(nil, testAccount)
	want := map[string]*roaring.Bitmap{}
	for _, channel := range reach.Channels {
		want[channel] = roaring.New()
	}
	for o := range accountOf(v).Profiles.Headers.Count {
		if !v.Profiles().Has(o) {
			continue
		}
		p, err := v.Profiles().Get(o)
		if err != nil {
			t.Fatal(err)
		}
		compareStatusSets(t, v, p)
		compareSubscribed(t, v, p)
		channels := reachOracle(p, accountOf(v).Settings.RequireOptIn)
		for _, channel := range reach.Channels {
			in := slices.Contains(channels, channel)
			if in {
				want[channel].Add(o)
			}
			if reason, err := v.Reach().WhyUnreachable(o, channel); err != nil || (reason == "") != in {
				t.Fatalf("%s to profile %d is unreachable because of %q (%v); it can be sent to: %t", channel, o, reason, err, in)
			}
		}
	}
	have := v.Reach().Channels()
	if len(have) != len(want) {
		t.Fatalf("channels %v", slices.Sorted(maps.Keys(have)))
	}
	for channel, b := range want {
		if !have[channel].Equals(b) {
			t.Fatalf("%s reaches %v, want %v", channel, have[channel].ToArray(), b.ToArray())
		}
	}
}

// compareStatusSets compares the sets by status with the statuses that a profile has,
// now and when it has long not reacted.
func compareStatusSets(t *testing.T, v *View, p *view.Profile) {
	t.Helper()
	for _, channel := range profile.Channels {
		for _, at := range []int64{v.LogTimeMs(), v.LogTimeMs() + 1000*dayMs} {
			have := p.Status(channel, at)
			for _, status := range segment.ContactStatuses {
				in := accountOf(v).Profiles.Reach.WithStatus(channel, status).Contains(p.Ordinal)
				if status == have && !in || have == "" && in {
					t.Fatalf("profile %d has status %q on %s; among those who may be %s: %t", p.Ordinal, have, channel, status, in)
				}
			}
		}
	}
}

// compareSubscribed compares `subscribed` of a definition with whom a campaign mails
// where sending takes a subscription, but for a missing address, which no consent is.
func compareSubscribed(t *testing.T, v *View, p *view.Profile) {
	t.Helper()
	root := mustDefinition(t, `{"kind":"attribute","field":"subscribed","op":"=","value":true}`)
	root.UseCurrentFields()
	f, err := v.Profiles().Facts(p.Ordinal)
	if err != nil {
		t.Fatal(err)
	}
	withAddress := *p
	withAddress.Identities = append(slices.Clone(p.Identities), view.Identity{Kind: IdentityEmail, Value: "x"})
	want := slices.Contains(reachOracle(&withAddress, true), "email")
	for _, at := range []int64{v.LogTimeMs(), v.LogTimeMs() + 1000*dayMs} {
		if is, naive := root.Attribute.Match(f, at), root.Naive(segment.NaiveOf(f, nil), at, nil); is != want || naive != want {
			t.Fatalf("profile %d is subscribed: %t, naive %t; a campaign mails such people: %t", p.Ordinal, is, naive, want)
		}
	}
}

func (w *searchWorld) reachStep() {
	channel := pick(w.rng, "email", "sms", "whatsapp", "im", "push", "in_app")
	switch w.rng.IntN(6) {
	case 0, 1:
		w.command(contacts.CommandConsentSet, contacts.ConsentSet{ID: w.anybody(), Channel: channel, Status: pick(w.rng, "subscribed", "unsubscribed"), Source: "form"})
	case 2:
		w.command(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: w.anybody(), Channel: channel, Reason: pick(w.rng, "bounced", "complained", "suppressed", "", "")})
	case 3, 4:
		w.command(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: w.anybody(), Device: fmt.Sprint(w.rng.IntN(3)), Kind: pick(w.rng, profile.DeviceKinds...), Address: fmt.Sprint("token", w.rng.IntN(12))})
	case 5:
		w.command(contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: w.anybody(), Device: fmt.Sprint(w.rng.IntN(3))})
	}
}

// TestReachMatchesScan: after any making, merging, erasing, blocking and asking, the sets
// have exactly the profiles that a message could be sent to, also when they are read back
// from a checkpoint or made for one that has none.
func TestReachMatchesScan(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count(4, 20)
	for seed := range seeds {
		settings := DefaultSettings()
		settings.RequireOptIn = seed%2 == 0
		w := &searchWorld{rand.New(rand.NewPCG(uint64(seed), 7)), newDurable(t, settings)}
		var list contacts.List
		if err := json.Unmarshal(w.command(contacts.CommandListCreate, contacts.ListSave{Name: "l"}).Reply, &list); err != nil {
			t.Fatal(err)
		}
		reached := uint64(0)
		for range 12 {
			for range w.rng.IntN(40) {
				w.step([]string{list.ID})
				w.reachStep()
			}
			switch w.rng.IntN(3) {
			case 0:
				w.reload()
			case 1: // a build that did not know the sets wrote it
				for name, s := range w.m.accounts[testAccount].Sets.All() {
					if reach.IsSet(name) {
						s.Assign(roaring.BitmapOf(0))
					}
				}
				checkpointInPlace(t, w.m)
				if err := w.m.makeReach(); err != nil {
					t.Fatal(err)
				}
			}
			compareReach(t, w.m)
			for _, b := range w.m.View(nil, testAccount).Reach().Channels() {
				reached += b.GetCardinality()
			}
		}
		if reached == 0 {
			t.Fatal("no profile could ever be sent to")
		}
		hashOf(t, w.m)
		w.m.accounts[testAccount].Sets.Set("reach/email/subscribed").Add(1 << 20)
		if _, err := w.m.Hash(); err == nil {
			t.Fatal("a wrong set is not found")
		}
		w.m.accounts[testAccount].Sets.Set("reach/email/subscribed").Remove(1 << 20)
		w.m.accounts[testAccount].Sets.Set("reach/email/active").Add(1 << 20)
		if _, err := w.m.Hash(); err == nil {
			t.Fatal("a wrong set by status is not found")
		}
		w.m.accounts[testAccount].Sets.Set("reach/email/active").Remove(1 << 20)
	}
}

// TestReachMatchesScanOfPending is the same where people confirm their subscription.
func TestReachMatchesScanOfPending(t *testing.T) {
	t.Parallel()
	pending := 0
	for seed := range uint64(6) {
		settings := DefaultSettings()
		settings.RequireOptIn, settings.DoubleOptIn = seed%2 == 0, true
		w := &searchWorld{rand.New(rand.NewPCG(seed, 8)), newDurable(t, settings)}
		for range 8 {
			for range w.rng.IntN(40) {
				w.step([]string{""})
				w.reachStep()
			}
			compareReach(t, w.m)
			v := w.m.View(nil, testAccount)
			pending += int(accountOf(v).Profiles.Reach.WithStatus("email", view.StatusPending).GetCardinality())
		}
	}
	if pending == 0 {
		t.Fatal("no profile was ever asked to confirm")
	}
}
