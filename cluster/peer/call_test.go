package peer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/resolver"
)

// TestCommand: a record reaches the owner once, and what it answers comes back:
// replies, refusals and errors.
func TestCommand(t *testing.T) {
	t.Parallel()
	x, router, owner := two(t, time.Minute)
	calls := 0
	var answer error
	submit := func(partition int, record []byte) ([]byte, error) {
		calls++
		if partition != 1 || string(record) != "record" {
			t.Errorf("partition %d, %q", partition, record)
		}
		return []byte("reply"), answer
	}
	owner.state.submit, router.state.submit = submit, submit
	command := func() ([]byte, error) {
		calls = 0
		return router.peers.Command(t.Context(), 1, []byte("record"))
	}
	if reply, err := command(); err != nil || string(reply) != "reply" || calls != 1 {
		t.Errorf("%q %v, %d calls", reply, err, calls)
	}
	refused := &resolver.Refusal{Code: "conflict", Field: "email", Message: "taken"}
	answer = refused
	var have *resolver.Refusal
	if _, err := command(); !errors.As(err, &have) || !reflect.DeepEqual(have, refused) || calls != 1 {
		t.Errorf("a refusal: %v, %d calls", err, calls)
	}
	for _, want := range []error{resolver.ErrOverloaded, resolver.ErrUnavailable} {
		answer = fmt.Errorf("x: %w", want)
		if _, err := command(); !errors.Is(err, want) || errors.Is(err, resolver.ErrNotOwner) || calls != 1 {
			t.Errorf("%v: %v, %d calls", want, err, calls)
		}
	}
	// What the state says of an owner that was is tried again, and nothing else.
	answer = fmt.Errorf("x: %w", resolver.ErrNotOwner)
	router.peers.opts.Wait = time.Second
	if _, err := command(); !errors.Is(err, resolver.ErrNotOwner) || errors.Is(err, resolver.ErrUnavailable) || calls < 2 {
		t.Errorf("not the owner: %v, %d calls", err, calls)
	}
	answer = nil
	router.peers.opts.Wait = time.Minute
	owner.state.own(1, false)
	since := router.state.looked(1)
	moved := make(chan struct{})
	var reply []byte
	var err error
	go func() { defer close(moved); reply, err = command() }()
	router.state.tried(t, 1, since)
	router.state.own(1, true)
	x.set(1, router.Node)
	<-moved
	if err != nil || string(reply) != "reply" || calls != 1 {
		t.Errorf("on this node by now: %q %v, %d calls", reply, err, calls)
	}
	router.state.own(1, false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := router.peers.Command(ctx, 1, nil); !errors.Is(err, resolver.ErrNotOwner) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("too late: %v", err)
	}
}

// TestAsk: each partition is answered for once, by its last owner.
func TestAsk(t *testing.T) {
	t.Parallel()
	x, router, owner := two(t, time.Minute)
	third := newMember(t, x, "third", secret, time.Second)
	answered := make(chan string, 100)
	for _, m := range []*member{router, owner, third} {
		m.answer = func(_ context.Context, name string, partitions []int, args []byte) (any, error) {
			answered <- fmt.Sprint(m.ID, partitions)
			return fmt.Sprintf("%s %s %s %v", m.ID, name, args, partitions), nil
		}
	}
	ask := func() (string, error) {
		replies, err := router.peers.Ask(t.Context(), router.answer, "who", map[string]int{"a": 1})
		var out []string
		for _, r := range replies {
			out = append(out, string(r))
		}
		slices.Sort(out)
		return strings.Join(out, "; "), err
	}
	router.state.own(0, true)
	x.set(0, router.Node)
	owner.state.own(2, true)
	x.set(2, owner.Node)
	if have, err := ask(); err != nil || have != `"owner who {\"a\":1} [1 2]"; "router who {\"a\":1} [0]"` {
		t.Errorf("%s %v", have, err)
	}
	for partition, want := range []string{`"router who null [0]"`, `"owner who null [1]"`} {
		if have, err := router.peers.AskOwner(t.Context(), partition, router.answer, "who", nil); err != nil || string(have) != want {
			t.Errorf("the owner of partition %d: %s %v, expected %s", partition, have, err, want)
		}
	}
	// One partition moves while it is asked for.
	owner.state.own(2, false)
	since := router.state.looked(2)
	moved := make(chan struct{})
	var have string
	var err error
	go func() { defer close(moved); have, err = ask() }()
	router.state.tried(t, 2, since)
	third.state.own(2, true)
	x.set(2, third.Node)
	<-moved
	if err != nil || have != `"owner who {\"a\":1} [1]"; "router who {\"a\":1} [0]"; "third who {\"a\":1} [2]"` {
		t.Errorf("%s %v", have, err)
	}
	third.state.own(2, false)
	router.peers.opts.Wait = time.Second
	if have, err := ask(); !errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("a partition without an owner: %s %v", have, err)
	}
	owner.state.own(2, true)
	x.set(2, owner.Node)
	owner.answer = func(context.Context, string, []int, []byte) (any, error) { return nil, resolver.ErrUnavailable }
	if have, err := ask(); !errors.Is(err, resolver.ErrUnavailable) {
		t.Errorf("an owner that cannot answer: %s %v", have, err)
	}
}
