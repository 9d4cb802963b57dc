package messaging

import (
	"context"
	"errors"
	"testing"

	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// pushService answers each message with an outcome of its own.
type pushService struct {
	push.Sender
	answers []outcome.Class
}

func (s *pushService) CheckToken(string) error        { return nil }
func (s *pushService) Check(*push.Notification) error { return nil }
func (s *pushService) Send(context.Context, string, *push.Notification) outcome.Result {
	class := s.answers[0]
	s.answers = s.answers[1:]
	return outcome.Failed(class, "x", errors.New("x"))
}

// TestLostAnswersReachPerhaps: a message whose answer was lost may have been taken, so that
// it must not be sent on another channel; a device that is dead has got none.
func TestLostAnswersReachPerhaps(t *testing.T) {
	t.Parallel()
	c, err := compose.Compile(campaigns.Content{Subject: "s", Text: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		answers     []outcome.Class
		unreachable bool
	}{
		{[]outcome.Class{outcome.Ambiguous}, false},
		{[]outcome.Class{outcome.Retired, outcome.Ambiguous}, false},
		{[]outcome.Class{outcome.Ambiguous, outcome.Retired}, false},
		{[]outcome.Class{outcome.Retired, outcome.Temporary}, false},
		{[]outcome.Class{outcome.Retired}, true},
		{[]outcome.Class{outcome.Permanent, outcome.Retired}, true},
		{nil, true},
	} {
		p := new(view.Profile)
		p.Devices = make([]view.Device, len(test.answers))
		for i := range p.Devices {
			p.Devices[i].Kind = "fcm"
		}
		x := &pushMedium{senders: map[string]push.Sender{"fcm": &pushService{answers: test.answers}}}
		got, err := x.deliver(t.Context(), &outgoing{content: c, profile: p, try: func(ctx context.Context, attempt func(context.Context) outcome.Result) (outcome.Result, error) {
			return attempt(ctx), nil
		}})
		if err != nil || got.unreachable() != test.unreachable {
			t.Errorf("%v: unreachable is %v, %v", test.answers, got.unreachable(), err)
		}
	}
	for class, want := range map[outcome.Class]bool{outcome.Permanent: true, outcome.Temporary: false, outcome.Ambiguous: false, outcome.Refused: false} {
		if d := deliveryOf(outcome.Failed(class, "x", errors.New("x"))); d.unreachable() != want {
			t.Errorf("%v: unreachable is %v", class, !want)
		}
	}
}

// TestOutcomesOfSeveralDevices: one device that took the message decides, and then one that
// may have taken it, whatever the others say.
func TestOutcomesOfSeveralDevices(t *testing.T) {
	t.Parallel()
	fault := errors.New("x")
	for _, c := range []struct {
		d    delivery
		want outcome.Class
	}{
		{delivery{result: outbox.ResultSent, handed: true, err: fault}, outcome.Accepted},
		{delivery{result: outbox.ResultRefused, handed: true}, outcome.Ambiguous},
		{delivery{result: outbox.ResultFailed, handed: true, err: fault}, outcome.Ambiguous},
		{delivery{result: outbox.ResultRefused, err: fault}, outcome.Refused},
		{delivery{result: outbox.ResultFailed, err: fault}, outcome.Temporary},
		{delivery{result: outbox.ResultFailed}, outcome.Permanent},
	} {
		if got := outcomeOf(&c.d); got.Class != c.want {
			t.Errorf("%+v: %s, not %s", c.d, got.Class, c.want)
		}
	}
}

// TestLostTextsAreGivenUpAsHanded: a text whose answer was lost at each attempt may have been
// taken, so that it keeps its credit and has no other in its place.
func TestLostTextsAreGivenUpAsHanded(t *testing.T) {
	t.Parallel()
	lost := outcome.Failed(outcome.Ambiguous, "x", errors.New("x"))
	d := new(Outbox).judgeText(1, &view.OutboxWork{Item: outbox.Item{Attempt: attempts - 1}}, lost)
	if d.Result != outbox.ResultFailed || !d.Handed || d.Unreachable {
		t.Errorf("%+v", d)
	}
}
