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
	for path, want := range map[string]string{
		"":        "audience is not a field of this call; leave it out, or use height or name",
		"user[0]": "user[0].audience is not a field of this call; leave it out, or use user[0].height or user[0].name",
	} {
		if have := NoField(path, "audience", []string{"name", "height"}).Error(); have != want {
			t.Errorf("have %s", have)
		}
	}
	many := make([]string, maxNamed+1)
	for _, known := range [][]string{nil, many} {
		if have := NoField("", "audience", known).Error(); have != "audience is not a field of this call; leave it out" {
			t.Errorf("%d fields: %s", len(known), have)
		}
	}
	e := NoField("", "list_ids", known)
	e.Instead = "lists are made first"
	if have := e.Error(); have != "list_ids is not a field of this call: lists are made first" {
		t.Errorf("have %s", have)
	}
}
