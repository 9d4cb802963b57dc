package resolver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// randomDeviceCommand registers and removes devices with few addresses, so that
// they move between profiles, also such as merge.
func randomDeviceCommand(rng *rand.Rand, node Served, people []string) {
	ctx := context.Background()
	if rng.IntN(5) == 0 {
		_, _ = node.Command(ctx, testAccount, contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: pick(rng, people...), Device: fmt.Sprint(rng.IntN(4))})
		return
	}
	if rng.IntN(20) == 0 {
		_, _ = node.Command(ctx, testAccount, pick(rng, credentials.CommandSet, credentials.CommandDelete), credentials.Credential{Group: credentials.Push, Name: "fcm", Config: json.RawMessage(`{"a":1}`)})
	}
	_, _ = node.Command(ctx, testAccount, contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: pick(rng, people...), Device: pick(rng, "", fmt.Sprint(rng.IntN(4))),
		Kind: pick(rng, profile.DeviceKinds...), Address: fmt.Sprint("token", rng.IntN(12))})
}

// checkDevices checks that the index, the documents and the set of profiles with
// devices say the same (R2: an address belongs to one profile).
func checkDevices(t *testing.T, m *Machine) {
	t.Helper()
	for _, a := range m.accounts {
		var d profile.Document
		hashes := map[identifier.Hash]bool{}
		for o := range a.Profiles.Headers.Count {
			if a.Profiles.Root(o) != o || a.Profiles.Erased(o) {
				if a.Sets.Members(contacts.SetDevices).Contains(o) {
					t.Fatalf("R2: profile %d was merged or erased and is in the set of those with devices", o)
				}
				continue
			}
			if err := a.Profiles.Load(o, &d); err != nil {
				t.Fatal(err)
			}
			for _, id := range d.Identifiers {
				h, ok := a.Profiles.Hasher.HashIdentifier(id.Kind, id.Value, &m.tx.normal)
				switch {
				case ok && id.Shared && a.Profiles.Identifiers.Owner(h) == o:
					t.Fatalf("R2: %q identifies profile %d, which is said to share it", id.Value, o)
				case ok && !id.Shared:
					hashes[h] = true
				}
			}
			for _, v := range d.Devices {
				h := a.Profiles.Hasher.HashDevice(v.Kind, v.Address, &m.tx.normal)
				if hashes[h] || a.Profiles.Identifiers.Owner(h) != o {
					t.Fatalf("R2: device %s of profile %d belongs to %d", v.Address, o, a.Profiles.Identifiers.Owner(h))
				}
				hashes[h] = true
			}
			if len(d.Devices) > profile.MaxDevices || a.Sets.Members(contacts.SetDevices).Contains(o) != (len(d.Devices) > 0) {
				t.Fatalf("profile %d has %d devices", o, len(d.Devices))
			}
		}
		if a.Profiles.Identifiers.Size() != len(hashes) {
			t.Fatalf("R2: the index has %d entries, the profiles %d", a.Profiles.Identifiers.Size(), len(hashes))
		}
	}
}

func (r *recorder) device(profile, id, address string) contacts.DeviceReply {
	r.t.Helper()
	return answer[contacts.DeviceReply](r.t, r.must(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: profile, Device: id, Kind: "fcm", Address: address}))
}

func (r *recorder) devices(profile string) (out []string) {
	r.t.Helper()
	checkDevices(r.t.(*testing.T), r.m)
	for _, v := range r.profile(profile).Devices {
		out = append(out, v.ID+"="+v.Address)
	}
	return out
}

func (r *recorder) seen(typ string) int {
	if x := r.m.accounts[testAccount].Types.Get(typ); x != nil {
		return int(x.Count)
	}
	return 0
}

func TestR2DeviceAddressBelongsToOneProfile(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	one, two := r.contact(contacts.Create{Email: "one@x.io"}), r.contact(contacts.Create{Email: "two@x.io"})
	r.device(one, "phone", "t1")
	r.device(one, "phone", "t1") // again: nothing happens
	if got := r.devices(one); !slices.Equal(got, []string{"phone=t1"}) || r.seen(contacts.EventDeviceRegistered) != 1 {
		t.Fatalf("%v, %d events", got, r.seen(contacts.EventDeviceRegistered))
	}
	if r.profile(one).Consent("push").Status != "subscribed" {
		t.Error("a device brings no consent")
	}
	r.device(two, "mine", "t1")
	if got := r.devices(one); got != nil || r.seen(contacts.EventDeviceRetired) != 1 {
		t.Fatalf("the first still has %v", got)
	}
	r.device(two, "mine", "t2") // the same device with another token
	if got := r.devices(two); !slices.Equal(got, []string{"mine=t2"}) {
		t.Fatalf("%v", got)
	}
	made := r.device(two, "", "t3")
	r.refuses("no such device", contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: two, Device: "other"})
	r.must(contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: two, Device: made.Device})
	r.must(contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: two, Device: "mine"})
	if got := r.devices(two); got != nil {
		t.Fatalf("%v", got)
	}
	for i := range profile.MaxDevices + 3 {
		r.device(one, fmt.Sprint(i), fmt.Sprint("many", i))
	}
	if got := r.devices(one); len(got) != profile.MaxDevices || got[0] != "3=many3" {
		t.Fatalf("%v", got)
	}
	r.refuses("kind Input should be webpush, fcm or apns", contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: one, Kind: "sms", Address: "x"})
	r.refuses("address", contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: one, Kind: "fcm"})
	r.refuses("no contact", contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: "prf_x", Kind: "fcm", Address: "x"})
}

func TestR2DevicesFollowAMerge(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	mail, phone := r.contact(contacts.Create{Email: "one@x.io"}), r.contact(contacts.Create{Phone: "+49 1"})
	for i := range profile.MaxDevices {
		r.device(mail, fmt.Sprint("m", i), fmt.Sprint("m", i))
		r.now++
		r.device(phone, fmt.Sprint("p", i), fmt.Sprint("p", i))
		r.now++
	}
	r.events(eventlog.Event{Type: []byte("login"), Email: []byte("one@x.io"), Phone: []byte("+491")})
	got := r.devices(mail)
	if r.profile(phone).ID.String() != mail || len(got) != profile.MaxDevices || got[0] != "m10=m10" || got[profile.MaxDevices-1] != "p19=p19" {
		t.Fatalf("after the merge: %v", got)
	}
	// An address that was left behind is free.
	r.device(r.contact(contacts.Create{Email: "new@x.io"}), "x", "m0")
	r.devices(mail)
}

func TestPushResultRetiresDeadDevices(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	one := r.contact(contacts.Create{Email: "one@x.io"})
	r.contact(contacts.Create{Email: "none@x.io"})
	r.device(one, "a", "t1")
	r.device(one, "b", "t2")
	c := answer[campaigns.Campaign](t, r.must(campaigns.CommandSave, campaigns.Campaign{Name: "p", Channel: 2, Type: 4, Date: "2026-01-01", Message: campaigns.Message{Subject: "hi"}}))
	run := r.start(campaigns.Start{ID: c.ID, Devices: true, Plan: campaigns.Plan{BatchSize: 10}})
	if run.Total != 1 || run.Members != 1 {
		t.Fatalf("%+v", run)
	}
	b := r.batch(c.ID, 1)
	r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: b.Recipients[0].Ordinal, Result: outbox.ResultSent, Devices: 2, Accepted: 1, Retired: []string{"t1"}})
	if got, x := r.devices(one), r.run(c.ID); !slices.Equal(got, []string{"b=t2"}) || x.Devices != 2 || x.Accepted != 1 || x.Retired != 1 {
		t.Fatalf("%v %+v", got, x)
	}
}

func TestThirdSoftBounceWithoutASignOfLifeBlocks(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	id := r.contact(contacts.Create{Email: "one@x.io"})
	say := func(kind, agent string) string {
		r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: id, Channel: "email", Kind: kind, Agent: agent})
		return r.profile(id).SuppressionReason("email")
	}
	day := int64(dayMs)
	// each says what blocks the contact after the last of some events.
	each := func(kinds ...string) (blocked string) {
		for _, kind := range kinds {
			if blocked = say(kind, ""); blocked != "" {
				break
			}
		}
		return blocked
	}
	if each(messages.EngagementSoftBounce, messages.EngagementSoftBounce) != "" {
		t.Fatal("blocked by the second")
	}
	r.now += 15 * day // those are too old now
	if each(messages.EngagementSoftBounce, messages.EngagementSoftBounce) != "" || say(messages.EngagementOpen, messages.AgentPerson) != "" || each(messages.EngagementSoftBounce) != "" {
		t.Fatal("blocked in spite of an open")
	}
	if say(messages.EngagementOpen, messages.AgentMachine) != "" || each(messages.EngagementSoftBounce) != "" || each(messages.EngagementSoftBounce) != "bounced" {
		t.Fatal("not blocked by the third, which only a machine looked at")
	}
	if p := r.profile(id); p.Opened != 1 || r.seen(contacts.EventSuppressed) != 1 || r.seen("email_opened") != 2 {
		t.Errorf("%d opens count, %d events", p.Opened, r.seen("email_opened"))
	}
}

// TestDevicesOfSomebodyErased: a dry run of a push message reads its audience in pieces;
// a profile erased since the first has no devices.
func TestDevicesOfSomebodyErased(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	id := r.contact(contacts.Create{Email: "ada@x.io"})
	r.must(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: id, Kind: "fcm", Address: "token-1"})
	v := r.m.View(nil, testAccount)
	o, _ := v.Profiles().ResolveText(id)
	if devices, reason, err := v.Reach().PushDevices(o); len(devices) != 1 || reason != "" || err != nil {
		t.Fatalf("before: %v, %q, %v", devices, reason, err)
	}
	r.must(CommandContactErase, ContactErase{ID: id})
	if devices, reason, err := v.Reach().PushDevices(o); len(devices) != 0 || reason != "erased" || err != nil {
		t.Errorf("erased: %v, %q, %v", devices, reason, err)
	}
}
