package main

import (
	"slices"
	"strings"
	"testing"
)

// rule is one statement of the interface and how it is checked against the
// running program, over HTTP alone.
type rule struct {
	name  string // what holds, in our words
	check func(*check)
}

// part is a group of rules about one subject. The rules of a part run one after
// another in a company of their own; parts run side by side.
type part struct {
	name  string
	rules []rule
}

// conformance is the whole interface. What comes anew adds a file with a
// function that returns its part, and a line here.
func conformance() []part {
	return []part{
		envelopePart(),
		contactPart(),
		statusPart(),
		listPart(),
		segmentPart(),
		mistakesPart(),
		segmentReadPart(),
		pushPart(),
		pushOptionsPart(),
		whatsAppPart(),
		keywordPart(),
		inAppPart(),
		omniPart(),
		formPart(),
		orderPart(),
		preferencePart(),
		campaignPart(),
		sendPart(),
		sendDefaultsPart(),
		resultPart(),
		analyticsPart(),
		flowPart(),
		flowStatusPart(),
		flowCreditPart(),
		flowTriggerPart(),
		flowStepPart(),
		flowReportPart(),
		keyPart(),
		neverPart(),
		permissionPart(),
		accessPart(),
		rateAPart(),
		rateCPart(),
		failurePart(),
		eventPart(),
		identityPart(),
		batchPart(),
		credentialPart(),
		catalogPart(),
		surfaceCPart(),
		webhookPart(),
		versionPart(),
	}
}

// TestConformance walks the interface, rule by rule, against one server with a
// relay for e-mail and services for push messages and webhooks beside it: one
// with its log and history in files, one with them in Kafka and ClickHouse, and
// one of three nodes on these, which has a third of the companies.
func TestConformance(t *testing.T) {
	t.Parallel()
	inModes(t, conforms)
	t.Run("nodes", func(t *testing.T) {
		conforms(t, append(kafkaArgs(t), "--cluster-secret", clusterSecret, "--kafka-partitions", "3"))
	})
}

func conforms(t *testing.T, args []string) {
	t.Parallel()
	parts := conformance()
	seen := map[string]bool{}
	for _, p := range parts {
		if len(p.rules) == 0 {
			t.Errorf("%s has no rules", p.name)
		}
		for _, r := range p.rules {
			name := p.name + "/" + r.name
			if seen[name] || r.check == nil || strings.Contains(r.name, "/") {
				t.Errorf("%s is listed twice, has a slash in its name, or no check", name)
			}
			seen[name] = true
		}
	}
	w := newWorld(t, args)
	// The parts that wait longest begin first.
	slices.SortStableFunc(parts, func(a, b part) int { return slowness(b) - slowness(a) })
	t.Run("rules", func(t *testing.T) {
		for _, p := range parts {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				company := w.company(t)
				for _, r := range p.rules {
					t.Run(r.name, func(t *testing.T) { r.check(&check{t, w, company}) })
				}
			})
		}
	})
	if t.Failed() {
		t.Logf("the server's log:\n%s", w.server.log())
	}
	t.Logf("%d rules in %d parts", len(seen), len(parts))
}

// slowness orders parts by how long they wait.
func slowness(p part) int {
	return slices.Index([]string{"sending: pace", "webhooks"}, p.name)
}
