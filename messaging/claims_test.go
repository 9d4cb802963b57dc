package messaging_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
)

// TestOutboxUnderEpochs: all kinds of items are carried out, repeated, given up
// and held back as they are by a node alone.
func TestOutboxUnderEpochs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"mail":          TestOutboxMailThroughARelay,
		"crash":         TestR1OutboxMailIsRepeatedAfterACrash,
		"given up":      TestOutboxGivesUpAfterTwelveHours,
		"confirmations": TestDoubleOptInMailHasItsLink,
		"flows":         TestF1EffectsAreRepeatedUnderTheirIDs,
		"advertising":   TestAdvertisingGoesToSubscribersOnly,
		"texts":         TestTextsOfFlowsThroughAProvider,
		"calls":         TestCallsOfFlows,
		"slow hosts":    TestSlowHostsHoldUpNoOthers,
	} {
		t.Run(name, test)
	}
}

// TestClaimsAreAskedForTogether: what wants to be claimed while a claim is under
// way goes into the next one, so that they cost few records.
func TestClaimsAreAskedForTogether(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 64)
	p := f.processes[0]
	p.pause.Store(int64(50 * time.Millisecond)) // longer than all commands take together, on most machines
	const mails = 256
	for i := range mails {
		go func() {
			_, _ = p.node.Command(t.Context(), f.account, messages.CommandEmailSend,
				messages.EmailSend{Mail: messages.Mail{To: fmt.Sprintf("m%d@x.io", i), TemplateID: f.template.ID}})
		}()
	}
	f.until("all are sent", p, func(v *resolver.View) bool { return count(v, "email_sent") == mails && v.Outbox().Len() == 0 })
	var text bytes.Buffer
	p.set.WritePrometheus(&text)
	for line := range bytes.Lines(text.Bytes()) {
		var records int
		if _, err := fmt.Sscanf(string(line), "muster_outbox_claim_records_total %d", &records); err == nil {
			if records < 1 || records > mails/4 {
				t.Errorf("%d records claimed %d items", records, mails)
			}
			return
		}
	}
	t.Error("nothing counts the records")
}

// TestAPlannedMoveRepeatsWhatIsUnderWay: the next owner of a partition does not wait for the messages
// of the former one, and sends those without an outcome again, under their ids.
func TestAPlannedMoveRepeatsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4)
	one, two := f.processes[0], f.processes[1]
	begun, answered := make(chan struct{}), make(chan struct{})
	answer := sync.OnceFunc(func() { close(answered) })
	defer answer()
	f.answer = func(node string) {
		if node == one.name {
			close(begun)
			<-answered
		}
	}
	f.must(one, messages.CommandEmailSend, messages.EmailSend{Mail: messages.Mail{To: "m0@x.io", TemplateID: f.template.ID}}, nil)
	<-begun
	released := make(chan error, 1)
	go func() { released <- one.node.Release(t.Context(), 0) }()
	ok(t, two.node.Take(t.Context(), 0))
	f.until("the next owner sends it", two, func(v *resolver.View) bool { return count(v, "email_sent") == 1 && v.Outbox().Len() == 0 })
	answer()
	ok(t, <-released)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.effects) != 1 {
		t.Errorf("%d ids: %v", len(f.effects), f.effects)
	}
	for id, list := range f.effects {
		if len(list) != 2 || list[0].node != one.name || list[1].node != two.name {
			t.Errorf("%s was sent by %v", id, list)
		}
	}
}
