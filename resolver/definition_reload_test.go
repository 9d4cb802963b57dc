package resolver

import (
	"encoding/json"
	"testing"

	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/credentials"
)

// TestR1DefinitionsAreReadBackAsTheyWere: what a replica has of a definition does not
// depend on whether it applied the record or read a checkpoint, to the byte: it is
// answered, and compared with what it is changed to.
func TestR1DefinitionsAreReadBackAsTheyWere(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	const rule = `{"kind":"attribute","field":"attributes.<&>","op":">=","value":1}`
	var made struct{ ID string }
	if err := json.Unmarshal(d.must(CommandSegmentCreate, SegmentSave{Name: "a & b", Definition: json.RawMessage(rule)}).Reply, &made); err != nil {
		t.Fatal(err)
	}
	segment := made.ID
	flow := `{"name":"<&>","trigger":{"type":"event","event":"e"},"reentry":"once","steps":[{"id":"c","type":"condition","if":` + rule + `,"yes":null,"no":null}]}`
	if err := json.Unmarshal(d.must(automation.CommandCreate, automation.Save{Definition: json.RawMessage(flow)}).Reply, &made); err != nil {
		t.Fatal(err)
	}
	d.must(credentials.CommandSet, credentials.Credential{Group: "inbound", Name: "ses", Config: json.RawMessage(`{"url":"https://x.io/?a=1&b=<>"}`)})
	texts := func() [3]string {
		a := d.m.accounts[testAccount]
		saved, _ := a.Flows.Get(made.ID)
		ses, _ := a.Credentials.Get(credentials.Inbound, "ses")
		return [3]string{string(a.Segments[segment].Definition), string(saved.Definition), string(ses.Config)}
	}
	before := texts()
	if before[0] != rule {
		t.Fatalf("the definition is %s", before[0])
	}
	d.reload()
	if have := texts(); have != before {
		t.Errorf("read back\n%q\nwas\n%q", have, before)
	}
}
