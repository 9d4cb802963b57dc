package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

const erasedBelow = 100 // the offset up to which the erased identifiers were theirs

var (
	hasher = identifier.NewHasher([16]byte{7})
	// erased and living are values of an erased person, and of one who is on file.
	erased = [identifier.Kinds]string{"gone@erased.io", "erased-customer", "+49700700700", "erased-device"}
	living = [identifier.Kinds]string{"lives@here.io", "living-customer", "+49100100100", "living-device"}
	nobody = [identifier.Kinds]string{"new@here.io", "new-customer", "+49222222222", "new-device"}
)

// redactor is one that erases the erased person.
func redactor() *Redactor {
	owner := map[identifier.Hash]uint32{}
	below := map[identifier.Hash]int64{}
	var buf []byte
	for k := range identifier.Kinds {
		h, _ := hasher.HashIdentifier(k, []byte(living[k]), &buf)
		owner[h] = 1
		h, _ = hasher.HashIdentifier(k, []byte(erased[k]), &buf)
		below[h] = erasedBelow
	}
	r := New(featuretest.Account, hasher, nil, People{
		Marked: func(identifier.Hash) (int64, bool) { return 0, false },
		Owner: func(h identifier.Hash) uint32 {
			if o, ok := owner[h]; ok {
				return o
			}
			return profile.NoOrdinal
		},
		Shows:  func(uint32, identifier.Kind, identifier.Hash) (bool, error) { return false, nil },
		Named:  func(string) (uint32, bool) { return 0, false },
		Erased: func(uint32) bool { return false },
	})
	r.Erase([]uint32{0}, below)
	return r
}

// redacted is a record as it is afterwards, and whether it is another one.
func redacted(t *testing.T, offset int64, rec []byte) ([]byte, bool) {
	t.Helper()
	splices, err := redactor().Record(offset, rec)
	if err != nil {
		t.Fatal(err)
	}
	x := eventlog.Redaction{Splices: splices}
	now, ok := x.Apply(nil, rec)
	if !ok {
		t.Fatal("the splices do not fit the record")
	}
	return now, splices != nil
}

func envelope(kind eventlog.Kind) []byte {
	return (&eventlog.Envelope{Kind: kind, Account: featuretest.Account, StampMs: 1}).Append(nil)
}

// identifiersOf draws some values, at least one; it returns the kind that ranks highest among
// those of the erased and the living person, and whose it is.
func identifiersOf(rng *rand.Rand, kinds identifier.Kind) (values [identifier.Kinds]string, hasErased, wasErased bool) {
	decided := false
	for values == [identifier.Kinds]string{} {
		for k := range kinds {
			from := rng.IntN(5)
			if from > 2 {
				continue
			}
			values[k] = [][identifier.Kinds]string{erased, living, nobody}[from][k]
			hasErased = hasErased || from == 0
			if !decided && from < 2 {
				decided, wasErased = true, from == 0
			}
		}
	}
	return values, hasErased, wasErased
}

// checkTexts fails if a record has texts of the erased person, or lacks those of others.
func checkTexts(t *testing.T, rec []byte, values [identifier.Kinds]string, wasErased bool) {
	t.Helper()
	for k, v := range values {
		has := bytes.Contains(rec, []byte(v))
		if v == erased[k] && v != "" && has {
			t.Fatalf("%q is in %q", v, rec)
		}
		if v == living[k] && v != "" && !has {
			t.Fatalf("%q of another person is not in %q any more", v, rec)
		}
	}
	for _, secret := range []string{"Secretname", "secret-value"} {
		if bytes.Contains(rec, []byte(secret)) == wasErased {
			t.Fatalf("was the erased person's is %v: %q", wasErased, rec)
		}
	}
}

// TestEventsAreRedacted: what was the erased person's leaves a record of events, in all of which
// identifiers lead to the same profiles as before; nothing else changes, and doing it again
// changes nothing.
func TestEventsAreRedacted(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 7))
		n := 1 + rng.IntN(4)
		rec := eventlog.AppendEventCount(envelope(eventlog.KindEvents), n)
		type drawn struct {
			values    [identifier.Kinds]string
			any, mine bool
			encoded   []byte
		}
		var list []drawn
		for range n {
			var x drawn
			x.values, x.any, x.mine = identifiersOf(rng, identifier.Kinds)
			x.encoded = eventlog.AppendEvent(nil, &eventlog.Event{
				Type: []byte("bought"), Email: []byte(x.values[0]), ExternalID: []byte(x.values[1]), Phone: []byte(x.values[2]), AnonymousID: []byte(x.values[3]),
				FirstName: []byte("Secretname"), Properties: []byte(`{"note":"secret-value"}`), Attributes: []byte(`{"note":"secret-value"}`),
			})
			rec = append(rec, x.encoded...)
			list = append(list, x)
		}
		if late, changed := redacted(t, erasedBelow, rec); changed || !bytes.Equal(late, rec) {
			t.Fatalf("seed %d: a record of after the erasure changes", seed)
		}
		now, changed := redacted(t, erasedBelow-1, rec)
		if changed != slices.ContainsFunc(list, func(x drawn) bool { return x.any }) {
			t.Fatalf("seed %d: changed is %v", seed, changed)
		}
		if again, changed := redacted(t, erasedBelow-1, now); changed || !bytes.Equal(again, now) {
			t.Fatalf("seed %d: redacted again it is another record", seed)
		}
		_, body, _ := eventlog.DecodeEnvelope(now)
		r, err := eventlog.NewEventsReader(body)
		if err != nil {
			t.Fatal(err)
		}
		var ev eventlog.Event
		var buf []byte
		for _, x := range list {
			if !r.Next(&ev) {
				t.Fatal(r.Err())
			}
			encoded := eventlog.AppendEvent(nil, &ev)
			if checkTexts(t, encoded, x.values, x.mine); !x.any && !bytes.Equal(encoded, x.encoded) {
				t.Fatalf("seed %d: an event without erased persons is another one", seed)
			}
			if ev.Redacted != x.mine || string(ev.Type) != "bought" {
				t.Fatalf("seed %d: redacted is %v, want %v", seed, ev.Redacted, x.mine)
			}
			for k, value := range identrules.Of(&ev) {
				have, hasHave := hasher.HashIdentifier(identifier.Kind(k), value, &buf)
				want, hasWant := hasher.HashIdentifier(identifier.Kind(k), []byte(x.values[k]), &buf)
				if have != want || hasHave != hasWant {
					t.Fatalf("seed %d: %q leads elsewhere than %q", seed, value, x.values[k])
				}
			}
		}
	}
}

// TestCommandsAreRedacted: the same of commands that bring identifiers.
func TestCommandsAreRedacted(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 8))
		v, hasErased, wasErased := identifiersOf(rng, identifier.Anonymous)
		attributes := json.RawMessage(`{"note":"secret-value"}`)
		for name, args := range map[string]any{
			contacts.CommandCreate: contacts.Create{Email: v[0], ExternalID: v[1], Phone: v[2], FirstName: "Secretname", LastName: "secret-value"},
			forms.CommandSubmit:    forms.Submit{ID: "frm_1", Keys: []string{"k"}, Email: v[0], Values: forms.Values{Phone: v[2], FirstName: "Secretname", Attributes: attributes}},
		} {
			values, any, mine := v, hasErased, wasErased
			if name == forms.CommandSubmit {
				values[1] = ""
				if any, mine = v[0] == erased[0] || v[2] == erased[2], v[0] == erased[0] || v[0] != living[0] && v[2] == erased[2]; v[0] == "" && v[2] == "" {
					continue
				}
			}
			rec := eventlog.AppendCommand(envelope(eventlog.KindCommand), name, must.JSON(args))
			now, changed := redacted(t, erasedBelow-1, rec)
			if changed != any {
				t.Fatalf("seed %d: %s changed is %v, want %v", seed, rec, changed, any)
			}
			checkTexts(t, now, values, mine)
			if again, changed := redacted(t, erasedBelow-1, now); changed {
				t.Fatalf("seed %d: redacted again %q is %q", seed, now, again)
			}
			_, body, _ := eventlog.DecodeEnvelope(now)
			if have, _, err := eventlog.DecodeCommand(body); err != nil || have != map[bool]string{true: Prefix}[any]+name {
				t.Fatalf("seed %d: the command is %q, %v", seed, have, err)
			}
		}
	}
}

// TestTextsLoseAddresses: what a relay answered loses the addresses of erased persons, and
// nothing else.
func TestTextsLoseAddresses(t *testing.T) {
	r := redactor()
	for text, want := range map[string]string{
		"550 <" + strings.ToUpper(erased[0]) + ">: no such user": "550 <" + ErasedText + ">: no such user",
		"to " + erased[2] + ", " + living[2] + ".":               "to " + ErasedText + ", " + living[2] + ".",
		"mailbox=" + erased[0] + " is full":                      "mailbox=" + ErasedText + " is full",
		"timeout after 3 s":                                      "timeout after 3 s",
	} {
		have := text
		if changed := r.text(erasedBelow-1, &have); have != want || changed != (text != want) {
			t.Errorf("%q becomes %q", text, have)
		}
		if r.text(erasedBelow, &text) {
			t.Errorf("%q of after the erasure changes", text)
		}
	}
	if have := splitWords("  a, b. (c)  ", ",()", func(w string) string { return fmt.Sprintf("[%s]", w) }); strings.NewReplacer("[", "", "]", "").Replace(have) != "  a, b. (c)  " {
		t.Errorf("words are put together as %q", have)
	}
}

// TestKeptOut: a command that brings an identifier which is kept out is refused before it is
// stored, whichever other persons it concerns.
func TestKeptOut(t *testing.T) {
	var buf []byte
	marked, _ := hasher.HashIdentifier(identifier.Email, []byte(erased[0]), &buf)
	r := redactor()
	r.people.Marked = func(h identifier.Hash) (int64, bool) { return 1, h == marked }
	for email, want := range map[string]bool{erased[0]: true, living[0]: false} {
		rec := eventlog.AppendCommand(envelope(eventlog.KindCommand), contacts.CommandCreate, must.JSON(contacts.Create{Email: email}))
		if _, err := r.Record(erasedBelow+1, rec); err != nil {
			t.Fatal(err)
		}
		if kind, out := r.KeptOut(); out != want || out && kind != identifier.Email {
			t.Errorf("%s: kept out is %v by %v", email, out, kind)
		}
	}
}

// TestAnswersAreRedacted: of what providers said of a message to an erased person nothing
// stays but what became of it, and what tells repeats.
func TestAnswersAreRedacted(t *testing.T) {
	r := redactor()
	r.Erase([]uint32{7}, r.below)
	r.people.Erased = func(o uint32) bool { return o == 8 } // erased after the batch was begun
	var buf []byte
	for o, gone := range map[uint32]bool{7: true, 8: true, 9: false} {
		send := messages.OutboxSend(3, o)
		for name, args := range map[string]any{
			messages.CommandOutboxDone: outbox.Done{Seq: 1, Result: outbox.ResultBounced, Reason: "secret-value", ProviderID: "secret-value", Ordinal: o},
			campaigns.CommandResult:    campaigns.Result{Ordinal: o, Result: outbox.ResultFailed, Reason: "secret-value"},
			messages.CommandEngagement: messages.EngagementRecord{Kind: messages.EngagementBounce, Send: send, Key: "secret-value", Reason: "secret-value", Source: "secret-value"},
		} {
			rec := eventlog.AppendCommand(envelope(eventlog.KindCommand), name, must.JSON(args))
			splices, err := r.Record(erasedBelow+1, rec)
			if err != nil {
				t.Fatal(err)
			}
			x := eventlog.Redaction{Splices: splices}
			now, _ := x.Apply(nil, rec)
			if bytes.Contains(now, []byte("secret-value")) == gone {
				t.Errorf("%s of profile %d becomes %q", name, o, now)
			}
			if again, err := r.Record(erasedBelow+1, now); err != nil || again != nil {
				t.Errorf("%s is redacted again: %+v, %v", name, again, err)
			}
			if name != messages.CommandEngagement {
				continue
			}
			_, body, _ := eventlog.DecodeEnvelope(now)
			_, left, _ := eventlog.DecodeCommand(body)
			var c messages.EngagementRecord
			if err := json.Unmarshal(left, &c); err != nil || hasher.HashReportKey(c.Key, &buf) != hasher.HashReportKey("secret-value", &buf) {
				t.Errorf("a repeat of the report would count: %s, %v", left, err)
			}
		}
	}
}

// TestNamelessErrorsStay: what names no person stays, so that a replay makes the same of it.
func TestNamelessErrorsStay(t *testing.T) {
	r := redactor()
	r.Erase([]uint32{7}, r.below)
	for name, args := range map[string]any{
		campaigns.CommandResult: campaigns.Result{Ordinal: 7, Result: outbox.ResultFailed, Reason: "550 no such user", Anonymous: true},
		campaigns.CommandFinish: campaigns.Finish{Stopped: "to " + erased[1], Anonymous: true},
	} {
		if splices, err := r.Record(erasedBelow-1, eventlog.AppendCommand(envelope(eventlog.KindCommand), name, must.JSON(args))); err != nil || splices != nil {
			t.Errorf("%s changes: %v", name, err)
		}
	}
}

// TestRefusedPhoneIsRedacted: what was sent as a phone, and is none, goes as well.
func TestRefusedPhoneIsRedacted(t *testing.T) {
	r := redactor()
	r.Erase([]uint32{7}, r.below)
	r.people.Named = func(id string) (uint32, bool) { return 7, id == "prf_7" }
	c := contacts.Update{ID: "prf_7", Phone: addr("ask Secretname")}
	if !r.update(erasedBelow-1, &c) || *c.Phone != "-" {
		t.Errorf("the phone is %q", *c.Phone)
	}
}

func addr[T any](v T) *T { return &v }
