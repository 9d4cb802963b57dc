package forms

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/state"
)

// host is an account with one list.
type host struct{ logs bool }

func (h *host) HasList(id string) bool { return id == "lst_1" }
func (h *host) BeginConsentLog()       { h.logs = true }
func (h *host) HashPhone(phone string) identifier.Hash {
	return identifier.NewHasher([16]byte{1}).Sum([]byte(phone))
}

func newWorld(t *testing.T) *featuretest.World[*State] {
	t.Helper()
	return featuretest.New(t, Commands, func(s *state.Store) *State { return New(featuretest.Account, s, &host{}) })
}

func pointer[T any](v T) *T { return &v }

// form is one that can be saved.
func form(name string) Save {
	return Save{Name: &name, Fields: &[]Field{{Name: FieldEmail, Label: "E-mail", Required: true}}, Lists: &[]string{"lst_1"}}
}

// reload rebuilds the state from what is stored of it.
func reload(t *testing.T, w *featuretest.World[*State]) {
	t.Helper()
	before := w.Hash()
	again := New(featuretest.Account, w.Store, &host{})
	for _, kind := range []byte{state.EntityForm, state.EntityFormDay, state.EntityFormHeld} {
		prefix := state.EntityKey(featuretest.Account, kind, "")
		for key, value := range w.Store.Entities {
			if name, ok := strings.CutPrefix(key, prefix); ok && value != nil {
				if known, err := again.Load(kind, name, value); !known || err != nil {
					t.Fatal(known, err)
				}
			}
		}
	}
	if w.State = again; w.Hash() != before {
		t.Fatal("the state that was loaded is another one")
	}
}

// held1 is a submission as the naive account of them has it.
type held1 struct {
	id, form string
	atMs     int64
	done     bool
}

// TestHeldMatchesNaive: submissions are held for a week, the newest of each profile, through
// merges, erasures and restarts; one more is held unless it repeats one of the last hour, or
// there are as many already and one is of the last day.
func TestHeldMatchesNaive(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 11))
		w := newWorld(t)
		naive := map[uint32][]held1{}
		newest := func(list []held1) []held1 { return list[max(0, len(list)-MaxHeld):] }
		for i := range 300 {
			w.Now += rng.Int64N(dayMs / 2)
			for o, list := range naive {
				naive[o] = slices.DeleteFunc(list, func(x held1) bool { return x.atMs+7*24*3_600_000 <= w.Now })
			}
			o, tx := rng.Uint32N(4), w.Tx()
			switch rng.IntN(12) {
			case 0:
				winner := rng.Uint32N(4)
				if winner == o {
					continue
				}
				w.State.Merge(tx, winner, o)
				both := append(naive[o], naive[winner]...)
				slices.SortStableFunc(both, func(x, y held1) int { return int(x.atMs - y.atMs) })
				naive[winner] = newest(both)
				delete(naive, o)
			case 1:
				if err := w.State.Erase(tx, o); err != nil {
					t.Fatal(err)
				}
				delete(naive, o)
			case 2:
				list := w.State.Held(tx, o)
				if len(list) > 0 {
					k := rng.IntN(len(list))
					list[k].Done, naive[o][k].done = true, true
					w.State.PutHeld(tx, o, list)
				}
			case 3:
				reload(t, w)
			default:
				x := held1{id: fmt.Sprint(i), form: fmt.Sprint("frm_", rng.IntN(2)), atMs: w.Now}
				list := w.State.Held(tx, o)
				hold := w.State.MayHold(&feature.Tx{AtMs: w.Now, Rules: rulesHour}, list, x.form)
				if want := mayHold(naive[o], x); hold != want {
					t.Fatalf("seed %d: may hold is %d, want %d of %+v", seed, hold, want, naive[o])
				}
				if hold == HoldNow {
					w.State.Hold(tx, o, list, Submission{ID: x.id, Form: x.form, AtMs: x.atMs, Email: "a@x.io"})
					naive[o] = newest(append(naive[o], x))
				}
			}
			for o := range uint32(4) {
				var have []held1
				for _, x := range w.State.Held(w.Tx(), o) {
					have = append(have, held1{x.ID, x.Form, x.AtMs, x.Done})
				}
				if !slices.Equal(have, naive[o]) {
					t.Fatalf("seed %d: of profile %d are held %+v, want %+v", seed, o, have, naive[o])
				}
				for _, x := range naive[o] {
					if waits, err := w.State.Waits(o, x.id); err != nil || waits == x.done {
						t.Fatalf("seed %d: submission %s waits is %v, %v", seed, x.id, waits, err)
					}
				}
			}
			w.Hash()
		}
		// What is over is forgotten.
		w.Now += HeldForMs
		for range 4 {
			w.State.Submitted(w.Tx(), "frm_0")
		}
		if keys := slices.Collect(maps.Keys(w.State.held.until)); len(keys) > 0 {
			t.Fatalf("seed %d: submissions of %v are kept", seed, keys)
		}
	}
}

func mayHold(list []held1, x held1) int {
	today := false
	for _, y := range list {
		if y.form == x.form && x.atMs-y.atMs < 3_600_000 {
			return HoldAgain
		}
		today = today || x.atMs-y.atMs < 24*3_600_000
	}
	if len(list) >= MaxHeld && today {
		return HoldNot
	}
	return HoldNow
}

// TestFiguresMatchNaive: what happens at a form is counted on its day, for [MaxDays], and in all;
// a form that is deleted takes its figures along.
func TestFiguresMatchNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 12))
	w := newWorld(t)
	ids := []string{w.Must(CommandCreate, form("one")), w.Must(CommandCreate, form("two"))}
	days, total := map[string]map[string]Figures{}, map[string]Figures{}
	for range 1000 {
		w.Now += rng.Int64N(dayMs)
		id := ids[rng.IntN(2)]
		var n Figures
		switch rng.IntN(4) {
		case 0:
			n.Views = 1 + rng.Uint64N(10)
			w.Must(CommandViewed, Viewed{ID: id, Views: n.Views})
		case 1:
			n.Submissions = 1
			w.State.Submitted(w.Tx(), id)
		case 2:
			n.Conversions = 1
			w.State.Converted(w.Tx(), id)
		case 3:
			n.Unconfirmable = 1
			w.State.Unconfirmable(w.Tx(), id)
		}
		if days[id] == nil {
			days[id] = map[string]Figures{}
		}
		today := time.UnixMilli(w.Now).UTC()
		date := today.Format("2006-01-02")
		if _, ok := days[id][date]; !ok {
			maps.DeleteFunc(days[id], func(day string, _ Figures) bool {
				return day <= today.AddDate(0, 0, -MaxDays).Format("2006-01-02")
			})
		}
		days[id][date] = sum(days[id][date], n)
		total[id] = sum(total[id], n)
	}
	reload(t, w)
	for _, id := range ids {
		if w.State.Total(id) != total[id] {
			t.Errorf("%+v in all, want %+v", w.State.Total(id), total[id])
		}
		for from, to := range map[string]string{"": "9", "2003-01-01": "2003-06-30"} {
			var want []Day
			for _, date := range slices.Sorted(maps.Keys(days[id])) {
				if date >= from && date <= to {
					want = append(want, Day{date, days[id][date]})
				}
			}
			if have := w.State.Days(id, from, to); !slices.Equal(have, want) {
				t.Errorf("from %q to %q are %d days, want %d", from, to, len(have), len(want))
			}
		}
		w.Must(CommandDelete, Delete{ID: id})
		w.State.Converted(w.Tx(), id)
		if w.State.Total(id) != (Figures{}) || len(w.State.Days(id, "", "9")) > 0 {
			t.Error("the figures of a form that was deleted are kept")
		}
	}
}

func sum(x, y Figures) Figures {
	return Figures{x.Views + y.Views, x.Submissions + y.Submissions, x.Conversions + y.Conversions, x.Unconfirmable + y.Unconfirmable}
}

// TestFormsAreRefused: a form that cannot be shown or sent is refused, and changes nothing.
func TestFormsAreRefused(t *testing.T) {
	w := newWorld(t)
	id := w.Must(CommandCreate, form("a form"))
	if account, ok := AccountOf(id); !ok || account != featuretest.Account {
		t.Fatalf("%s is of account %d, %v", id, account, ok)
	}
	for code, list := range map[string][]Save{
		"invalid": {
			{Name: pointer("")}, {Title: pointer(" ")}, {Title: pointer("a\x00b")}, {Fields: &[]Field{}}, {Message: pointer("")},
			{Fields: &[]Field{{Name: FieldEmail, Label: "E-mail"}}}, {Fields: &[]Field{{Name: "shoe", Label: "Shoe", Required: true}}},
			{Fields: &[]Field{{Name: FieldPhone, Label: "Phone", Required: true}}, DoubleOptIn: pointer(true)},
			{Consent: &Consent{Text: "yes"}}, {Consent: &Consent{Text: "yes", Channels: []string{"sms"}}}, {Lists: &[]string{"lst_1", "lst_1"}},
			{RedirectURL: pointer("http://shop.example")}, {RedirectURL: pointer("javascript:x")}, {AllowedOrigins: &[]string{"shop"}},
		},
		"not_found": {{Lists: &[]string{"lst_2"}}},
		"conflict":  {{Title: pointer("b"), IfVersion: "0000000000000000"}},
	} {
		for _, c := range list {
			c.ID = id
			w.Refused(code, CommandUpdate, c)
		}
	}
	w.Refused("not_found", CommandUpdate, Save{ID: "frm_0"})
	w.Refused("not_found", CommandDelete, Delete{ID: "frm_0"})
	w.Refused("not_found", CommandViewed, Viewed{ID: "frm_0", Views: 1})
	w.Refused("invalid", CommandViewed, Viewed{ID: id})
	w.Must(CommandUpdate, Save{ID: id, Consent: &Consent{Text: "yes", Channels: []string{"email"}}})
	f, _ := w.State.Get(id)
	if !w.State.host.(*host).logs || !slices.Equal(f.Consents(&Submit{Email: "a@x.io", Consented: true}), []string{"email"}) || f.Consents(&Submit{Email: "a@x.io"}) != nil || f.Consents(&Submit{Values: Values{Phone: "1"}, Consented: true}) != nil {
		t.Error("the consent of the form is not asked for")
	}
	for len(w.State.All()) < MaxForms {
		w.Must(CommandCreate, form("another"))
	}
	w.Refused("limit", CommandCreate, form("one more"))
	if _, err := w.State.Load(state.EntityFormHeld, string(binary.BigEndian.AppendUint16(nil, 1)), nil); err == nil {
		t.Error("held submissions of no profile are loaded")
	}
}
