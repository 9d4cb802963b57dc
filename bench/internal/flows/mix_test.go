package flows

import (
	"reflect"
	"testing"

	"github.com/musterhq/muster/flows"
)

var someSegments = []string{"seg_1", "seg_2", "seg_3"}

func TestMixIsOfAllKindsAndRepeatable(t *testing.T) {
	all := append(probeFlows("http://127.0.0.1:1"), mix(7, 98, someSegments, "http://127.0.0.1:1")...)
	if len(all) != 100 {
		t.Fatalf("%d flows", len(all))
	}
	if again := mix(7, 98, someSegments, "http://127.0.0.1:1"); !reflect.DeepEqual(all[2:], again) {
		t.Error("the same seed gives other flows")
	}
	if other := mix(8, 98, someSegments, "http://127.0.0.1:1"); reflect.DeepEqual(all[2:], other) {
		t.Error("the seed changes nothing")
	}
	steps, triggers := map[string]int{}, map[string]int{}
	for _, text := range all {
		f, err := flows.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		triggers[string(f.Trigger.Type)]++
		for _, s := range f.Steps {
			steps[string(s.Type)]++
		}
	}
	for _, want := range []string{"email", "webhook", "wait", "condition", "split", "tag", "update_contact", "exit"} {
		if steps[want] == 0 {
			t.Errorf("no flow has a step %q: %v", want, steps)
		}
	}
	if triggers["event"] < 50 || triggers["segment_entered"] < 15 {
		t.Errorf("triggers: %v", triggers)
	}
}
