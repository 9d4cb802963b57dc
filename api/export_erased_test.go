package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// keepingHistory erases nothing.
type keepingHistory struct{ *memHistory }

func (keepingHistory) Erase(context.Context, query.EraseQuery) error {
	return errors.New("the disk is full")
}

// TestErasedWhileHistoryHasThem: events of erased people are not shown while history still has
// them, also those of a profile that was merged into theirs.
func TestErasedWhileHistoryHasThem(t *testing.T) {
	t.Parallel()
	s := newService(t, keepingHistory{&memHistory{}}, nil)
	s.event(`{"event_type":"bought","user":{"email":"a@x.io"},"properties":{"what":"bread"}}`)
	s.event(`{"event_type":"bought","user":{"external_id":"visitor"},"properties":{"what":"cheese"}}`)
	id := s.event(`{"event_type":"bought","user":{"email":"b@x.io","external_id":"visitor"},"properties":{"what":"wine"}}`)
	export := func() string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://muster.test"+Prefix+"/export/events", nil)
		ok(t, err)
		req.Header.Set("Authorization", "Bearer "+s.token)
		res, err := s.client.Do(req)
		ok(t, err)
		b, err := io.ReadAll(res.Body)
		ok(t, err)
		ok(t, res.Body.Close())
		return string(b)
	}
	type recent struct {
		Events []struct{ Properties struct{ What string } }
		Total  int
	}
	var before, after recent
	s.want("GET", "/events/recent", "", &before)
	if all := export(); strings.Count(all, "\n") != 3 || before.Total != 3 {
		t.Fatalf("before: export %q, recent %+v", all, before)
	}
	_, err := s.node.Command(t.Context(), s.account(), resolver.CommandContactErase, resolver.ContactErase{ID: id})
	ok(t, err)
	if left := export(); strings.Count(left, "\n") != 1 || !strings.Contains(left, "bread") {
		t.Errorf("the export has %q", left)
	}
	s.want("GET", "/events/recent", "", &after)
	if after.Total != 1 || len(after.Events) != 1 || after.Events[0].Properties.What != "bread" {
		t.Errorf("recent events are %+v", after)
	}
}
