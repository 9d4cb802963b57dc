package jsonform

import "testing"

func TestNear(t *testing.T) {
	known := []string{"list_id", "segment_ids", "template_source", "batch_size", "delay_between_batches", "to", "dryRun", "segmentId", "name", "names"}
	for name, want := range map[string]string{
		"list_ids": "list_id", "listId": "list_id", "LIST_ID": "list_id", "list-id": "list_id", "segmentID": "segmentId", "segment_id": "segmentId", "segmentIds": "segment_ids",
		"dry_run": "dryRun", "dryrun": "dryRun", "batchsize": "batch_size", "batch_szie": "batch_size", "template_sorce": "template_source", "tos": "to",
		"nam": "name", "namess": "names", "delay": "", "cc": "", "x": "", "": "", "list": "", "list_id_of_mine": "", "of": "", "t": "",
		"namee": "", "nmes": "names",
	} {
		if have := Near(name, known); have != want {
			t.Errorf("%q: %q, want %q", name, have, want)
		}
	}
	if have := Near("naem", []string{"name", "naeml"}); have != "" {
		t.Errorf("two are as near: %q", have)
	}
	for path, want := range map[string]string{
		"":            "list_ids is not a field of this call. Did you mean list_id?",
		"variants[1]": "variants[1].list_ids is not a field of this call. Did you mean variants[1].list_id?",
	} {
		if have := NoField(path, "list_ids", known).Error(); have != want {
			t.Errorf("have %s", have)
		}
	}
	if have := NoField("", "audience", known).Error(); have != "audience is not a field of this call; leave it out" {
		t.Errorf("have %s", have)
	}
}
