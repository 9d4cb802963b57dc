package resolver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// callAt is a call of an SDK at a time: pairs of a field and its value, as those of [call],
// and first_name and geo.
func callAt(ms int64, fields ...string) eventlog.Event {
	e := call(fields...)
	e.Call, e.HasTime, e.TimeMs = true, true, ms
	for i := 0; i < len(fields); i += 2 {
		switch v := []byte(fields[i+1]); fields[i] {
		case "first_name":
			e.FirstName = v
		case "geo":
			e.Geo = v
		}
	}
	return e
}

// known is what is known of a person, apart from the order of what has none.
func (r *recorder) known(o uint32) string {
	p := r.personAt(o)
	var ids []string
	for _, x := range p.Identities {
		ids = append(ids, x.Kind.String()+" "+normal(x.Kind, x.Value))
	}
	slices.Sort(ids)
	devices := slices.Sorted(slices.Values(p.AnonymousIDs))
	sorted := func(object json.RawMessage) string {
		if len(object) == 0 {
			return "{}"
		}
		b, err := json.Marshal(decodeObject(object))
		if err != nil {
			r.t.Fatal(err)
		}
		return string(b)
	}
	return fmt.Sprint(ids, devices, " shows ", p.Newest(IdentityEmail), " ", p.Newest(IdentityExternalID), " ", p.Newest(IdentityPhone), " ", p.FirstName, " ", p.LastName, " ", sorted(p.Geo), sorted(p.Attributes))
}

// permutations calls fn with each order of 0 to n-1.
func permutations(n int, fn func(order []int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var from func(k int)
	from = func(k int) {
		if k == n {
			fn(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			from(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	from(0)
}

// TestI4LatestCallWins: what calls say of a person is as the latest call says, in whatever
// order they arrive.
func TestI4LatestCallWins(t *testing.T) {
	t.Parallel()
	const at = 1_000_000_000_000 - 10_000
	for name, x := range map[string]struct {
		calls []eventlog.Event
		want  string
	}{
		"a page after the identify": {[]eventlog.Event{
			callAt(at, "external_id", "u1", "attributes", `{"plan":"free","city":"Rome"}`),
			callAt(at+1, "external_id", "u1", "attributes", `{"plan":"pro"}`),
			callAt(at+2, "external_id", "u1", "type", "page_viewed"),
		}, `[external_id u1] [] shows  u1    {}{"city":"Rome","plan":"pro"}`},
		"a trait that was taken away": {[]eventlog.Event{
			callAt(at, "external_id", "u1", "attributes", `{"plan":"free","a":1}`),
			callAt(at+1, "external_id", "u1", "attributes", `{"plan":null}`),
			callAt(at+2, "external_id", "u1", "attributes", `{"b":2}`),
		}, `[external_id u1] [] shows  u1    {}{"a":1,"b":2}`},
		"an object is one value": {[]eventlog.Event{
			callAt(at, "external_id", "u1", "attributes", `{"company":{"id":1,"size":2}}`),
			callAt(at+1, "external_id", "u1", "attributes", `{"company":{"id":2,"name":null}}`),
			callAt(at+2, "external_id", "u1", "attributes", `{"x":{"y":1}}`),
		}, `[external_id u1] [] shows  u1    {}{"company":{"id":2},"x":{"y":1}}`},
		"name, place and e-mail": {[]eventlog.Event{
			callAt(at, "external_id", "u1", "email", "a@x.io", "first_name", "Ann", "geo", `{"city":"Rome"}`),
			callAt(at+1, "external_id", "u1", "email", "b@x.io", "first_name", "Bea", "geo", `{"country":"IT"}`),
			callAt(at+2, "external_id", "u1", "geo", `{"city":"Milan"}`),
		}, `[email a@x.io email b@x.io external_id u1] [] shows b@x.io u1  Bea  {"city":"Milan","country":"IT"}{}`},
		"before the login": {[]eventlog.Event{
			callAt(at, "external_id", "u1", "attributes", `{"plan":"free","a":1}`),
			callAt(at+1, "anonymous", "d1", "attributes", `{"plan":"pro"}`, "first_name", "Ann"),
			callAt(at+2, "anonymous", "d1", "external_id", "u1", "attributes", `{"a":2}`),
			callAt(at+3, "anonymous", "d1", "attributes", `{"b":3}`),
		}, `[external_id u1] [d1] shows  u1  Ann  {}{"a":2,"b":3,"plan":"pro"}`},
		"taken away before the login": {[]eventlog.Event{
			callAt(at, "external_id", "u1", "attributes", `{"plan":"free"}`),
			callAt(at+1, "anonymous", "d1", "attributes", `{"plan":null,"a":1}`),
			callAt(at+2, "anonymous", "d1", "external_id", "u1"),
		}, `[external_id u1] [d1] shows  u1    {}{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			permutations(len(x.calls), func(order []int) {
				if name == "name, place and e-mail" && order[2] != 2 && order[0] == 1 {
					return // the second e-mail of a person is no value without a conflict
				}
				r := newRecorder(t, DefaultSettings())
				var o uint32
				for _, i := range order {
					o = r.who(x.calls[i])
				}
				o = r.m.accounts[testAccount].Profiles.Root(o)
				if got := r.known(o); got != x.want || r.people() != 1 {
					t.Fatalf("order %v: %d people, %s\nwant %s", order, r.people(), got, x.want)
				}
			})
		})
	}
}

// TestI4AnyOrderEndsInOneProfile: calls of one person, with traits, end in the same profile in
// whatever order they arrive.
func TestI4AnyOrderEndsInOneProfile(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count(60, 300)
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 18))
		devices := 1 + rng.IntN(3)
		links := [][]string{{"external_id", "u1", "email", "a@x.io"}, {"email", "a@x.io", "phone", "+49301"}}
		for d := range devices {
			links = append(links, []string{"anonymous", fmt.Sprint("d", d), pick(rng, "external_id", "external_id", "email"), ""})
			if l := links[len(links)-1]; l[2] == "email" {
				l[3] = "a@x.io"
			} else {
				l[3] = "u1"
			}
		}
		var calls []eventlog.Event
		for i := range len(links) + 4 + rng.IntN(12) {
			fields := pick(rng, []string{"external_id", "u1"}, []string{"email", "a@x.io"}, []string{"phone", "+49301"}, []string{"anonymous", fmt.Sprint("d", rng.IntN(devices))})
			if i < len(links) {
				fields = links[i]
			}
			if rng.IntN(3) > 0 {
				fields = append(slices.Clone(fields), "attributes", fmt.Sprintf(`{"%c":%s}`, 'a'+rune(rng.IntN(3)), pick(rng, "1", "2", "null", `{"x":1}`, `{"y":2}`)))
			}
			if rng.IntN(4) == 0 {
				fields = append(slices.Clone(fields), "first_name", pick(rng, "Ann", "Bea"), "geo", pick(rng, `{"city":"Rome"}`, `{"city":"Oslo","country":"NO"}`))
			}
			calls = append(calls, callAt(999_999_000_000+int64(i)*10, fields...))
		}
		at := rng.Perm(len(calls))
		for i := range calls {
			calls[i].TimeMs = 999_999_000_000 + int64(at[i])*10
		}
		want := ""
		for range 4 {
			rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
			r := newRecorder(t, DefaultSettings())
			for _, c := range calls {
				r.who(c)
			}
			o, _ := r.view().Profiles().Find(IdentityExternalID, "u1")
			got := r.known(r.m.accounts[testAccount].Profiles.Root(o))
			if want == "" {
				want = got
			}
			if r.people() != 1 || got != want {
				var told []string
				for i := range calls {
					told = append(told, describe(&calls[i]))
				}
				t.Fatalf("seed %d: %d people, %s\nbefore it was %s\n%s", seed, r.people(), got, want, strings.Join(told, "\n"))
			}
		}
	}
}

// TestCallsAndOthersSayTraits: what others than SDKs said later is not undone by a call that
// arrives late, and what a call said later stands.
func TestCallsAndOthersSayTraits(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	o := r.who(callAt(r.now-5000, "external_id", "u1", "email", "a@x.io", "attributes", `{"plan":"free","a":1}`))
	id := r.m.accounts[testAccount].Profiles.Headers.Get(o).ID.String()
	email := "b@x.io"
	r.must(contacts.CommandUpdate, contacts.Update{ID: id, Email: &email, Attributes: json.RawMessage(`{"plan":"pro"}`)})
	r.who(ev("external_id", "u1", "attributes", `{"a":2}`))
	r.who(callAt(r.now-4000, "external_id", "u1", "email", "a@x.io", "attributes", `{"plan":"late","a":3,"b":4}`))
	if got := r.known(o); got != `[email a@x.io email b@x.io external_id u1] [] shows b@x.io u1    {}{"a":2,"b":4,"plan":"pro"}` {
		t.Fatal(got)
	}
	r.now += 1000
	r.who(callAt(r.now-100, "external_id", "u1", "attributes", `{"plan":"new"}`))
	if got := r.known(o); !strings.Contains(got, `"plan":"new"`) {
		t.Fatal(got)
	}
}

// TestTraitTimesAreBounded: of very many traits the oldest lose their times, and the past then
// fills gaps alone.
func TestTraitTimesAreBounded(t *testing.T) {
	t.Parallel()
	var many bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&many, `,"k%d":1`, i)
	}
	r := newRecorder(t, DefaultSettings())
	o := r.who(callAt(r.now-1000, "external_id", "u1", "attributes", "{"+many.String()[1:]+"}"))
	var d profile.Document
	if err := r.m.accounts[testAccount].Profiles.Load(o, &d); err != nil {
		t.Fatal(err)
	}
	if size := len(d.Append(nil)) - len(d.Attributes); size > 6000 {
		t.Fatalf("the times take %d bytes", size)
	}
	r.who(callAt(r.now-2000, "external_id", "u1", "attributes", `{"k3":2,"new":2}`))
	r.who(callAt(r.now-500, "external_id", "u1", "attributes", `{"k4":2}`))
	attributes := decodeObject(r.personAt(o).Attributes)
	if attributes["k3"] != 1.0 || attributes["new"] != 2.0 || attributes["k4"] != 2.0 {
		t.Fatalf("%v %v %v", attributes["k3"], attributes["new"], attributes["k4"])
	}
}
