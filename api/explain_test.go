package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
)

type explainAnswer struct {
	SegmentID  string `json:"segment_id"`
	ProfileID  string `json:"profile_id"`
	Member     bool
	AsOf       string `json:"as_of"`
	Definition explainNode
}

type explainNode struct {
	Kind       string
	Holds      bool
	Match      string
	Conditions []explainNode
	Condition  json.RawMessage
	Facts      *struct {
		MatchingEvents int `json:"matching_events"`
		Value          any
		Member         bool
		Name           *string
		Definition     *explainNode
	}
}

func (s *service) explain(segment, profile string) (out explainAnswer, message string) {
	s.t.Helper()
	a := s.want("GET", "/segments/"+segment+"/explain?profile_id="+profile, "", &out)
	return out, a.Message
}

// TestExplain is one answer to the letter, with every kind of condition.
func TestExplain(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	user := `"user":{"email":"Ann@X.io","first_name":"Ann","geo":{"city":"Berlin"},"attributes":{"plan":"pro","tags":["a","b"],"deep":{"n":1.50}}}`
	id := s.event(`{"event_type":"item_purchased","properties":{"value":10,"sku":"a"},` + user + `}`)
	for _, event := range []string{
		`"item_purchased","properties":{"value":20,"sku":"b"}`, `"item_purchased","properties":{"value":70.1,"sku":"a"}`,
		`"item_purchased","properties":{"value":"70","sku":true}`, `"seen"`,
	} {
		s.clock.Advance(time.Hour)
		s.event(`{"event_type":` + event + `,"user":{"email":"ann@x.io"}}`)
	}
	inner := s.segment("In Berlin", berlin)
	purchases := func(rest string) string { return `{"kind":"activity","event":"item_purchased",` + rest + `}` }
	account, _ := tokens.Account(s.token, tokens.Session)
	reply, err := s.node.Command(t.Context(), account, contacts.CommandListCreate, contacts.ListSave{Name: "l"})
	ok(t, err)
	var list struct{ ID string }
	ok(t, json.Unmarshal(reply, &list))
	for _, c := range []struct {
		name string
		args any
	}{
		{contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "whatsapp", Status: "unsubscribed", Source: "form"}},
		{contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "im", Reason: "suppressed"}},
		{messages.CommandEngagement, messages.EngagementRecord{Profile: id, Channel: "email", Kind: messages.EngagementClick}},
		{contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: id, Kind: "apns", Address: "x"}},
	} {
		_, err := s.node.Command(t.Context(), account, c.name, c.args)
		ok(t, err)
	}
	leaves := []struct{ definition, holds, facts string }{
		{buyers, "true", `{"matching_events":4,"value":4,"newest_at":"2025-03-01T15:00:00.000Z","oldest_at":"2025-03-01T12:00:00.000Z"}`},
		{purchases(`"did":false,"window":{"last_days":0.125}`), "false",
			// the one at the window's start is not in it
			`{"matching_events":2,"value":2,"newest_at":"2025-03-01T15:00:00.000Z","oldest_at":"2025-03-01T14:00:00.000Z","window_start":"2025-03-01T13:00:00.000Z"}`},
		{purchases(`"where":[{"property":"sku","op":"=","value":"a"}],"aggregate":{"fn":"sum","property":"value","op":">=","value":80.1}`), "true",
			`{"matching_events":2,"value":80.1,"values":2,"newest_at":"2025-03-01T14:00:00.000Z","oldest_at":"2025-03-01T12:00:00.000Z"}`},
		{purchases(`"aggregate":{"fn":"avg","property":"value","op":">","value":33.366667}`), "false",
			`{"matching_events":4,"value":"33.366666…","values":3,"newest_at":"2025-03-01T15:00:00.000Z","oldest_at":"2025-03-01T12:00:00.000Z"}`},
		{purchases(`"aggregate":{"fn":"distinct","property":"sku","op":"=","value":3}`), "true",
			`{"matching_events":4,"value":3,"values":4,"newest_at":"2025-03-01T15:00:00.000Z","oldest_at":"2025-03-01T12:00:00.000Z"}`},
		{`{"kind":"activity","event":"never","aggregate":{"fn":"max","property":"value","op":"!=","value":0}}`, "false",
			`{"matching_events":0,"value":null,"values":0,"newest_at":null,"oldest_at":null}`},
		{berlin, "true", `{"value":"Berlin"}`},
		{`{"kind":"attribute","field":"email","op":"=","value":"ann@x.io"}`, "true", `{"value":["ann@x.io"]}`},
		{`{"kind":"attribute","field":"phone","op":"not_exists"}`, "true", `{"value":null}`},
		{`{"kind":"attribute","field":"last_name","op":"exists"}`, "false", `{"value":null}`},
		{`{"kind":"attribute","field":"attributes.tags","op":"contains","value":"b"}`, "true", `{"value":["a","b"]}`},
		{`{"kind":"attribute","field":"attributes.deep","op":"=","value":1.5}`, "false", `{"value":{"n":1.50}}`},
		{`{"kind":"attribute","field":"created_at","op":"<","value":"2025-03-02T00:00:00.000Z"}`, "true", `{"value":"2025-03-01T12:00:00.000Z"}`},
		{`{"kind":"consent","channel":"sms","status":"subscribed"}`, "false", `{"status":"never_subscribed","subscribed_at":null}`},
		{`{"kind":"attribute","field":"status.whatsapp","op":"=","value":"Unsubscribed"}`, "true", `{"value":"Unsubscribed"}`},
		{`{"kind":"attribute","field":"status.email","op":"exists"}`, "false", `{"value":null}`},
		{`{"kind":"attribute","field":"status.email","op":"in","value":["At risk","Engaged","Subscribed"]}`, "false", `{"value":null}`},
		{`{"kind":"attribute","field":"suppressed.im","op":"=","value":true}`, "true", `{"value":true}`},
		{`{"kind":"attribute","field":"first_seen_at","op":"in_last_days","value":1}`, "true", `{"value":"2025-03-01T12:00:00.000Z"}`},
		{`{"kind":"attribute","field":"last_event_at","op":"not_in_last_days","value":1}`, "false", `{"value":"2025-03-01T16:00:00.000Z"}`},
		{`{"kind":"attribute","field":"event_count","op":">=","value":6}`, "false", `{"value":5}`},
		{`{"kind":"attribute","field":"engagement_score","op":">","value":14}`, "true", `{"value":15}`},
		{`{"kind":"attribute","field":"push_devices","op":"in","value":["apns","fcm"]}`, "true", `{"value":["apns"]}`},
		{`{"kind":"list","list_id":"` + list.ID + `","member":false}`, "true", `{"member":false}`},
		{`{"kind":"segment","segment_id":"` + inner.ID + `","member":false}`, "false",
			`{"name":"In Berlin","member":true,"definition":{"kind":"attribute","holds":true,"condition":` + berlin + `,"facts":{"value":"Berlin"}}}`},
		{`{"kind":"segment","segment_id":"` + inner.ID + `"}`, "true", `{"name":"In Berlin","member":true}`},
	}
	var conditions, nodes []string
	for _, l := range leaves {
		conditions = append(conditions, l.definition)
		var head struct{ Kind string }
		ok(t, json.Unmarshal([]byte(l.definition), &head))
		nodes = append(nodes, fmt.Sprintf(`{"kind":%q,"holds":%s,"condition":%s,"facts":%s}`, head.Kind, l.holds, l.definition, l.facts))
	}
	group := func(conditions []string) string {
		return `{"match":"any","conditions":[{"match":"all","conditions":[` + strings.Join(conditions[:2], ",") + `]},` + strings.Join(conditions[2:], ",") + `]}`
	}
	seg := s.segment("All kinds", group(conditions))
	want := fmt.Sprintf(`{"segment_id":%q,"profile_id":%q,"member":true,"as_of":"2025-03-01T16:00:00.000Z","definition":%s}`, seg.ID, id,
		strings.NewReplacer(`{"match":"any",`, `{"kind":"group","holds":true,"match":"any",`, `{"match":"all",`, `{"kind":"group","holds":false,"match":"all",`).Replace(group(nodes)))
	a := s.want("GET", "/segments/"+seg.ID+"/explain?profile_id="+id, "", nil)
	if string(a.Data) != want || a.Message != "" {
		got := string(a.Data)
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("from byte %d on (message %q):\nhave %s\nwant %s", at, a.Message, got[at:], want[at:])
	}
	// The same definition while it is not saved.
	a = s.want("POST", "/segments/explain", fmt.Sprintf(`{"definition":%s,"profile_id":%q}`, group(conditions), id), nil)
	if unsaved := strings.Replace(want, fmt.Sprintf(`"segment_id":%q,`, seg.ID), "", 1); string(a.Data) != unsaved {
		t.Errorf("not saved: %s", a.Data)
	}
}

// TestExplainAgreesWithMembers (S1): a profile is explained as a member exactly
// when it is listed, before and after profiles are merged; a merged id explains
// the profile it was merged into.
func TestExplainAgreesWithMembers(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	ids := s.fill(12)
	x := s.event(`{"event_type":"item_purchased","properties":{"value":500},"user":{"external_id":"x"}}`)
	ids = append(ids, x)
	var segments []string
	add := func(definition string) string {
		segments = append(segments, s.segment(fmt.Sprint("s", len(segments)), definition).ID)
		return segments[len(segments)-1]
	}
	add(buyers)
	spenders := add(spender)
	add(`{"kind":"activity","event":"item_purchased","did":false}`)
	add(`{"kind":"activity","event":"item_purchased","count":{"op":"<=","value":1}}`)
	add(`{"kind":"activity","event":"item_purchased","aggregate":{"fn":"avg","property":"value","op":"between","value":[80,380]}}`)
	nested := add(fmt.Sprintf(`{"match":"any","conditions":[{"kind":"segment","segment_id":%q,"member":false},%s]}`, spenders, berlin))
	add(fmt.Sprintf(`{"match":"all","conditions":[{"kind":"segment","segment_id":%q},{"kind":"segment","segment_id":%q}]}`, nested, spenders))
	add(`{"kind":"attribute","field":"external_id","op":"not_exists"}`)
	add(`{"kind":"attribute","field":"event_count","op":">","value":1}`)
	add(`{"kind":"attribute","field":"last_event_at","op":">","value":"2025-03-01T12:00:00.000Z"}`)
	check := func(winner map[string]string) {
		t.Helper()
		mixed := 0
		for _, id := range segments {
			var m membersAnswer
			s.want("GET", "/segments/"+id+"/members", "", &m)
			for _, p := range ids {
				whom := p
				if w := winner[p]; w != "" {
					whom = w
				}
				got, message := s.explain(id, p)
				if got.Member != slices.Contains(m.Members, whom) || got.Member != got.Definition.Holds || got.ProfileID != whom || got.SegmentID != id || message != "" || got.AsOf != m.AsOf {
					t.Errorf("segment %s, profile %s: %+v, %q", id, p, got, message)
				}
			}
			if len(m.Members) > 0 && len(m.Members) < len(ids) {
				mixed++
			}
		}
		if mixed < 7 {
			t.Errorf("only %d segments tell profiles apart", mixed)
		}
	}
	check(nil)
	// Profile 2 spent 80, x spent 500; now they are one profile.
	if got, _ := s.explain(spenders, ids[2]); got.Member || got.Definition.Facts.Value != 80.0 {
		t.Errorf("before: %+v", got.Definition.Facts)
	}
	if id := s.event(`{"event_type":"seen","user":{"email":"p2@x.io","external_id":"x"}}`); id != ids[2] {
		t.Fatalf("merged into %s", id)
	}
	check(map[string]string{x: ids[2]})
	for _, id := range []string{x, ids[2], strings.ToUpper(x[len("prf_"):])} {
		if !strings.HasPrefix(id, "prf_") {
			id = "prf_" + id
		}
		if got, _ := s.explain(spenders, id); !got.Member || got.Definition.Facts.Value != 580.0 || got.Definition.Facts.MatchingEvents != 2 {
			t.Errorf("%s, merged: %+v", id, got.Definition.Facts)
		}
	}
}

// TestExplainErrors is the table of what is refused.
func TestExplainErrors(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	profile := s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	seg := s.segment("Buyers", buyers).ID
	path := "/segments/" + seg + "/explain"
	for _, x := range []struct {
		method, path string
		status       int
		field, says  string
	}{
		{"GET", path, 400, "profile_id", "profile_id is missing"},
		{"GET", path + "?profile_id=", 400, "profile_id", "profile_id is missing"},
		{"GET", path + "?profile=" + profile, 400, "profile", "Did you mean profile_id?"},
		{"GET", path, 400, "profile_id", "profile_id is missing"},
		{"GET", path + "?profile_id=none", 404, "", "no profile"},
		{"GET", path + "?profile_id=" + profile + "0", 404, "", "no profile"},
		{"GET", path + "?profile_id=" + profile[:len(profile)-1], 404, "", "no profile"},
		{"GET", path + "?profile_id=" + profile[:len(profile)-1] + "g", 404, "", "no profile"},
		{"GET", path + "?profile_id=%20" + profile, 404, "", "no profile"},
		{"GET", path + "?profile_id=a@x.io", 404, "", "no profile"},
		{"GET", path + "?profile_id=" + seg, 404, "", "no profile"},
		{"GET", path + "?profile_id=prf_00000000000000000000000000000000", 404, "", "no profile"},
		{"GET", path + "?profile_id=%ff%00", 400, "profile_id", "valid UTF-8"},
		{"GET", path + "?profile_id=" + strings.Repeat("a", 3000), 404, "", "no profile"},
		{"GET", "/segments/seg_none/explain?profile_id=" + profile, 404, "", "no segment"},
		{"GET", "/segments/seg_none/explain", 404, "", "no segment"},
		{"GET", "/segments/" + profile + "/explain?profile_id=" + profile, 404, "", "no segment"},
		{"POST", path + "?profile_id=" + profile, 405, "", "POST"},
		{"GET", path + "/x?profile_id=" + profile, 404, "", "nothing at this path"},
	} {
		status, a := s.do(x.method, x.path, "")
		if status != x.status || a.field() != x.field || !strings.Contains(a.Message, x.says) {
			t.Errorf("%s %s: %d %q %s\nwant %d %q … %s", x.method, x.path, status, a.field(), a.Message, x.status, x.field, x.says)
		}
	}
	s.want("GET", path+"?profile_id="+profile, "", nil)
	s.want("DELETE", "/segments/"+seg, "", nil)
	if status, _ := s.get(path + "?profile_id=" + profile); status != 404 {
		t.Errorf("a deleted segment: %d", status)
	}
	s.token = ""
	if status, _ := s.get(path + "?profile_id=" + profile); status != 401 {
		t.Errorf("without a session: %d", status)
	}
}

// longHistory adds made-up events in front of everybody's, the newest an hour
// old, one a second.
type longHistory struct {
	memHistory
	extra int
	read  atomic.Int64 // entries answered
}

func (h *longHistory) Timeline(ctx context.Context, q query.TimelineQuery) ([]query.TimelineEntry, error) {
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	newest := time.Date(2025, 3, 1, 11, 0, 0, 0, time.UTC).UnixMilli()
	from := 0
	if q.Before != nil {
		from = int((newest-q.Before.TimeMs)/1000) + 1
	}
	var out []query.TimelineEntry
	for i := from; i < h.extra && len(out) < q.Limit; i++ {
		out = append(out, query.TimelineEntry{EventType: "item_purchased", Key: query.TimelineKey{TimeMs: newest - int64(i)*1000}})
	}
	h.read.Add(int64(len(out)))
	return out, nil
}

// explainPage is how many events of a profile an explanation reads at once.
const explainPage = 2000

// TestExplainManyEvents (Q1): so many events are read and no more; beyond, the
// answer is history's and says that the facts are missing.
func TestExplainManyEvents(t *testing.T) {
	t.Parallel()
	h := &longHistory{}
	s := newService(t, h, nil)
	id := s.event(`{"event_type":"item_purchased","properties":{"value":50},"user":{"email":"a@x.io"}}`)
	others := s.segment("Others", `{"match":"all","conditions":[`+strings.Join([]string{
		`{"kind":"activity","event":"never","did":false}`, `{"kind":"activity","event":"item_purchased","count":{"op":"=","value":1}}`,
		`{"kind":"activity","event":"item_purchased","count":{"op":"<=","value":0},"did":false}`, `{"kind":"attribute","field":"email","op":"exists"}`,
		`{"kind":"attribute","field":"event_count","op":"=","value":1}`,
	}, ",")+`]}`).ID
	for _, x := range []struct{ extra, read int }{{0, 0}, {1, 1}, {explainPage, explainPage}, {evaluation.ExplainEvents, evaluation.ExplainEvents}, {evaluation.ExplainEvents + 1, evaluation.ExplainEvents + 1}, {2 * evaluation.ExplainEvents, evaluation.ExplainEvents + explainPage}} {
		h.extra = x.extra
		h.read.Store(0)
		got, message := s.explain(others, id)
		conditions := got.Definition.Conditions
		if read := int(h.read.Load()); read != x.read {
			t.Errorf("%d events: read %d, want %d", x.extra, read, x.read)
		}
		if x.extra <= evaluation.ExplainEvents {
			for i, want := range []int{0, x.extra, x.extra} {
				if f := conditions[i].Facts; f == nil || f.MatchingEvents != want || f.Value != float64(want) {
					t.Errorf("%d events: condition %d has %+v", x.extra, i, f)
				}
			}
			if message != "" || conditions[1].Holds != (x.extra == 1) || conditions[2].Holds != (x.extra > 0) {
				t.Errorf("%d events: %+v %q", x.extra, conditions, message)
			}
			continue
		}
		// What history says of the one event it knows.
		for i, c := range conditions {
			if !c.Holds || (c.Facts == nil) != (i < 3 || i == 4) {
				t.Errorf("%d events: condition %d is %+v", x.extra, i, c)
			}
		}
		if !got.Member || !strings.Contains(message, "more than 100000 events") {
			t.Errorf("%d events: member %v, %q", x.extra, got.Member, message)
		}
	}
	// What is before all windows is not read.
	h.extra = 2 * evaluation.ExplainEvents
	h.read.Store(0)
	recent := s.segment("Recent", `{"match":"all","conditions":[{"kind":"activity","event":"item_purchased","window":{"last_days":0.0625}},{"kind":"activity","event":"seen","did":false,"window":{"last_days":0.05}}]}`).ID
	got, message := s.explain(recent, id)
	if f := got.Definition.Conditions[0].Facts; !got.Member || message != "" || f == nil || f.MatchingEvents != 1800 || h.read.Load() != explainPage {
		t.Errorf("in a window of 1.5 hours: %+v %q, read %d", f, message, h.read.Load())
	}
}

// TestExplainHistoryDown: history is needed for activity conditions alone.
func TestExplainHistoryDown(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	// Little time for what is not answered in time.
	s := newService(t, h, func(o *Options) { o.Evaluation.Timeout = 500 * time.Millisecond })
	id := s.fill(1)[0]
	inBerlin := s.segment("In Berlin", berlin).ID
	bought := s.segment("Buyers", buyers).ID
	through := s.segment("Through", `{"kind":"segment","segment_id":"`+bought+`"}`).ID
	without := func(t *testing.T) {
		if got, message := s.explain(inBerlin, id); !got.Member || message != "" {
			t.Errorf("without activity: %+v %q", got, message)
		}
	}
	with := func(t *testing.T) {
		for _, x := range []string{bought, through} {
			if status, a := s.get("/segments/" + x + "/explain?profile_id=" + id); status != 503 || a.header.Get("Retry-After") == "" {
				t.Errorf("with activity: %d %s", status, a.Message)
			}
		}
	}
	h.set(errors.New("disk on fire"), nil)
	t.Run("failing, without activity", without)
	t.Run("failing, with activity", with)
	hold := make(chan struct{})
	h.set(nil, hold)
	t.Run("slow, without activity", without)
	t.Run("slow, with activity", with)
	h.set(nil, nil)
	close(hold)
	eventually.Holds(t, "history answers again", func() bool {
		status, _ := s.get("/segments/" + through + "/explain?profile_id=" + id)
		return status == 200
	})
	if got, _ := s.explain(through, id); !got.Member || !got.Definition.Facts.Definition.Holds {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestExplainMuch (Q1): what is referred to is shown up to a bound, and judged
// up to a higher one.
func TestExplainMuch(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	id := s.fill(1)[0]
	var refs []string
	for i := range 21 {
		var conditions []string
		for j := range 499 {
			conditions = append(conditions, fmt.Sprintf(`{"kind":"activity","event":"e%d_%d"}`, i, j))
		}
		if i == 2 {
			conditions[0] = buyers
		}
		refs = append(refs, `{"kind":"segment","segment_id":"`+s.segment(fmt.Sprint("s", i), `{"match":"any","conditions":[`+strings.Join(conditions, ",")+`]}`).ID+`"}`)
	}
	any := func(refs []string) string {
		return s.segment("any", `{"match":"any","conditions":[`+strings.Join(refs, ",")+`]}`).ID
	}
	got, message := s.explain(any(refs[:6]), id)
	for i, c := range got.Definition.Conditions {
		if c.Holds != (i == 2) || (c.Facts.Definition != nil) != (i < 4) || *c.Facts.Name != fmt.Sprint("s", i) {
			t.Errorf("segment %d: %+v", i, c)
		}
	}
	if !got.Member || !strings.Contains(message, "without their definition") {
		t.Errorf("member %v, %q", got.Member, message)
	}
	if status, a := s.get("/segments/" + any(refs) + "/explain?profile_id=" + id); status != 409 || !strings.Contains(a.Message, "10479") {
		t.Errorf("too much: %d %s", status, a.Message)
	}
}

// twoHistories has a history for each of two partitions.
type twoHistories struct {
	memHistory
	second memHistory
}

func (h *twoHistories) of(partition int) *memHistory {
	return []*memHistory{&h.memHistory, &h.second}[partition]
}

func (h *twoHistories) Position(ctx context.Context, partition int) (int64, error) {
	return h.of(partition).Position(ctx, partition)
}

func (h *twoHistories) Append(ctx context.Context, b *query.Batch) error {
	return h.of(b.Partition).Append(ctx, b)
}

func (h *twoHistories) Timeline(ctx context.Context, q query.TimelineQuery) ([]query.TimelineEntry, error) {
	return h.of(q.Cut.Partition).Timeline(ctx, q)
}

// TestR2ExplainApart: an account explains neither another's segments nor
// another's profiles, and counts none of their events.
func TestR2ExplainApart(t *testing.T) {
	t.Parallel()
	mine := newServiceOn(t, &twoHistories{}, 2, nil)
	own, err := mine.creds.Account()
	ok(t, err)
	other := *mine
	for {
		other.creds, err = accounts.NewCredentials(rand.Reader, "http://muster.test")
		ok(t, err)
		if n, err := other.creds.Account(); err == nil && n%2 != own%2 {
			break
		}
	}
	other.creds.ConsoleEmail = "other@muster.local"
	ok(t, other.creds.Bootstrap(t.Context(), mine.node, rand.Reader))
	other.token = ""
	other.token = other.signIn()

	type side struct {
		*service
		profile, segment string
	}
	var sides []side
	for i, s := range []*service{mine, &other} {
		x := side{service: s}
		for range i + 1 {
			x.profile = s.event(`{"event_type":"item_purchased","user":{"email":"a@x.io"}}`)
		}
		x.segment = s.segment("Buyers", buyers).ID
		sides = append(sides, x)
	}
	if sides[0].profile == sides[1].profile || sides[0].segment == sides[1].segment {
		t.Fatal("the accounts share ids: the test says nothing")
	}
	for i, x := range sides {
		y := sides[1-i]
		if got, _ := x.explain(x.segment, x.profile); !got.Member || got.Definition.Facts.MatchingEvents != i+1 {
			t.Errorf("own: %+v", got)
		}
		for _, path := range []string{y.segment + "/explain?profile_id=" + y.profile, y.segment + "/explain?profile_id=" + x.profile, x.segment + "/explain?profile_id=" + y.profile} {
			status, a := x.get("/segments/" + path)
			if status != 404 || bytes.Contains(a.Data, []byte("item_purchased")) {
				t.Errorf("another's: %d %s %s", status, a.Message, a.Data)
			}
		}
	}
}
