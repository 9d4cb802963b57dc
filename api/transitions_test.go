package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/segments"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node/live"
	"github.com/musterhq/muster/segment"
)

// sseMessage is a server-sent event; a comment has its text in event.
type sseMessage struct {
	id, event string
	data      struct {
		ProfileID string `json:"profile_id"`
		SegmentID string `json:"segment_id"`
		Cause     string
		At        string
		Position  string
	}
}

// transitionStream is an open stream.
type transitionStream struct {
	t    testing.TB
	res  *http.Response
	in   *bufio.Reader
	last string // the last id
}

// follow opens the stream of a segment behind a position, "" for none.
func (s *service) follow(id, after string, asHeader bool) *transitionStream {
	s.t.Helper()
	url := "http://muster.test" + Prefix + "/segments/" + id + "/transitions"
	if after != "" && !asHeader {
		url += "?after=" + after
	}
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", url, nil)
	ok(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.token)
	if asHeader {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := s.client.Do(req)
	ok(s.t, err)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("the stream is answered %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	f := &transitionStream{t: s.t, res: res, in: bufio.NewReader(res.Body)}
	if m, more := f.next(); !more || m.event != ": watching" || m.id == "" || after != "" && m.id != after {
		s.t.Fatalf("the stream begins with %+v", m)
	}
	return f
}

func (f *transitionStream) close() { f.res.Body.Close() }

// next is the next message; false is the end.
func (f *transitionStream) next() (m sseMessage, more bool) {
	for {
		line, err := f.in.ReadString('\n')
		if err != nil {
			return m, false
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			return m, true
		case strings.HasPrefix(line, ":"):
			m.event = line
		case name == "id":
			m.id, f.last = value, value
		case name == "event":
			m.event = value
		case name == "data":
			ok(f.t, json.Unmarshal([]byte(value), &m.data))
		}
	}
}

// move is the next entry or exit, past signs of life.
func (f *transitionStream) move() (m sseMessage, more bool) {
	for {
		if m, more = f.next(); !more || m.event == "entered" || m.event == "left" || m.event == "end" {
			return m, more
		}
	}
}

// expect reads the next entry or exit.
func (f *transitionStream) expect(event, profile, cause, at string) sseMessage {
	f.t.Helper()
	m, more := f.move()
	if !more || m.event != event || m.data.ProfileID != profile || m.data.Cause != cause || at != "" && m.data.At != at || m.id == "" || m.id != m.data.Position {
		f.t.Fatalf("have %+v, want %s %s by %s at %s", m, profile, event, cause, at)
	}
	return m
}

// TestTransitions: entries and exits with their causes, as they happen and again
// from any position.
func TestTransitions(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, func(o *Options) { o.Heartbeat = 50 * time.Millisecond })
	old := s.event(`{"event_type":"item_purchased","user":{"email":"old@x.io"}}`)
	seg := s.segment("Buyers", `{"kind":"activity","event":"item_purchased","window":{"last_days":1}}`)
	s.live(seg.ID)
	eventually.Holds(t, "the definition's own transitions are there", func() bool { s.stored(); return len(h.transitions(seg.ID)) != 0 })

	f := s.follow(seg.ID, "", false)
	start := f.last
	s.clock.Advance(time.Hour)
	a := s.event(`{"event_type":"item_purchased","user":{"email":"a@x.io"}}`)
	first := f.expect("entered", a, "event", "2025-03-01T13:00:00.000Z")
	if first.data.SegmentID != seg.ID {
		t.Errorf("have %+v", first)
	}
	// Time passes, and nothing else happens.
	s.clock.Advance(23 * time.Hour)
	f.expect("left", old, "expiry", "2025-03-02T12:00:00.000Z")
	b := s.event(`{"event_type":"item_purchased","user":{"external_id":"b"}}`)
	f.expect("entered", b, "event", "")
	// The two become one.
	if winner := s.event(`{"event_type":"seen","user":{"email":"a@x.io","external_id":"b"}}`); winner != a {
		t.Fatalf("%s won", winner)
	}
	f.expect("left", b, "merge", "")
	s.want("PUT", "/segments/"+seg.ID, `{"name":"Seen","definition":{"kind":"activity","event":"signed_up"}}`, nil)
	last := f.expect("left", a, "definition", "")
	f.close()

	// A merged profile's id finds the one it is now.
	var p profileAnswer
	if s.want("GET", "/profiles/"+b, "", &p); p.ProfileID != a {
		t.Errorf("%s is %s now", b, p.ProfileID)
	}
	for _, asHeader := range []bool{false, true} {
		for after, want := range map[string]int{"0-0": 6, start: 5, first.id: 4, last.id: 0} {
			f := s.follow(seg.ID, after, asHeader)
			for range want {
				if m, more := f.next(); !more || strings.HasPrefix(m.event, ":") {
					t.Fatalf("behind %s: %+v", after, m)
				}
			}
			// Nothing else comes but signs of life.
			if m, _ := f.next(); m.event != ": alive" || f.last != last.id {
				t.Errorf("behind %s: %+v", after, m)
			}
			f.close()
		}
	}
	// The header is newer than the address it is sent to.
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://muster.test"+Prefix+"/segments/"+seg.ID+"/transitions?after=0-0", nil)
	ok(t, err)
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Last-Event-ID", last.id)
	res, err := s.client.Do(req)
	ok(t, err)
	f = &transitionStream{t: t, res: res, in: bufio.NewReader(res.Body)}
	if m, _ := f.next(); m.id != last.id {
		t.Errorf("both positions: %+v", m)
	}
	f.close()
}

// TestTransitionsOfOneRecord: one record may make more transitions than a page
// of history has, and a watcher may come back in the middle of the last one.
func TestTransitionsOfOneRecord(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	seg := s.segment("In Berlin", berlin)
	s.live(seg.ID)
	const transitionPage = 1000 // what is read of history at once
	const n = 2*transitionPage + 500
	var events []string
	for i := range n {
		events = append(events, fmt.Sprintf(`{"event_type":"seen","user":{"email":"p%d@x.io","geo":{"city":"Berlin"}}}`, i))
	}
	res, b := s.send("POST", "/api/v1/events/batch", `{"events":[`+strings.Join(events, ",")+`]}`, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
	if res.StatusCode != 202 {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	var positions []string
	f := s.follow(seg.ID, "0-0", false)
	for range n {
		m, _ := f.move()
		positions = append(positions, m.id)
	}
	f.close()
	for i := 1; i < n; i++ {
		if a, b, _ := strings.Cut(positions[i], "-"); !strings.HasPrefix(positions[0], a+"-") || b != fmt.Sprint(i+1) {
			t.Fatalf("number %d is at %s", i, positions[i])
		}
	}
	for _, i := range []int{n - 2, n - 1 - transitionPage, 0} {
		f := s.follow(seg.ID, positions[i], true)
		for j := i + 1; j < n; j++ {
			if m, _ := f.move(); m.id != positions[j] {
				t.Fatalf("behind %s comes %s", positions[i], m.id)
			}
		}
		f.close()
	}
}

// TestTransitionsRefused is who may not watch, and from where.
func TestTransitionsRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	seg := s.segment("Buyers", buyers)
	path := "/segments/" + seg.ID + "/transitions"
	for _, x := range []string{"x", "-", "1", "1-", "-1", "1-2-3", "+1-2", "1.5-2", "-5-2", "1-4294967296", "9223372036854775808-0", "99999-0", "99999-1"} {
		if status, a := s.get(path + "?after=" + strings.ReplaceAll(x, "+", "%2B")); status != 400 || a.field() != "after" || !strings.HasPrefix(a.Message, "after ") {
			t.Errorf("after %q: %d %q %s", x, status, a.field(), a.Message)
		}
		if status, a := s.do("GET", path+"?after=0-0", "", "Last-Event-ID", x); status != 400 || a.field() != "Last-Event-ID" {
			t.Errorf("Last-Event-ID %q: %d %q %s", x, status, a.field(), a.Message)
		}
	}
	if status, _ := s.get("/segments/seg_none/transitions"); status != 404 {
		t.Errorf("no such segment: %d", status)
	}
	account, _ := tokens.Account(s.token, tokens.Session)
	for {
		w, free := s.node.WatchTransitions(account, seg.ID)
		if !free {
			break
		}
		defer w.Close()
	}
	if status, a := s.get(path); status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("one watcher too many is answered %d %s", status, a.Message)
	}
}

// TestTransitionsEnd: a stream ends with the session, the segment, the service and
// what this node serves, and gives its watcher back.
func TestTransitionsEnd(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		do  func(s *service, id string)
		end bool // is said
	}{
		"signed out": {func(s *service, _ string) { s.want("DELETE", "/session", "", nil) }, false},
		"deleted":    {func(s *service, id string) { s.want("DELETE", "/segments/"+id, "", nil) }, true},
		"stopped":    {func(s *service, _ string) { s.api.Close() }, true},
		"released": {func(s *service, _ string) {
			if err := s.node.Release(t.Context(), 0); err != nil {
				t.Error(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, &memHistory{}, func(o *Options) { o.Heartbeat = 5 * time.Millisecond })
			seg := s.segment("Buyers", buyers)
			f := s.follow(seg.ID, "0-0", false)
			defer f.close()
			if m, more := f.next(); !more || m.event != ": alive" {
				t.Fatalf("have %+v", m)
			}
			x.do(s, seg.ID)
			m, more := f.move()
			if more != x.end || more && m.event != "end" {
				t.Errorf("have %+v", m)
			}
			if _, more := f.next(); more {
				t.Error("something comes behind the end")
			}
		})
	}
}

// TestReleasedStreamsSayTheEnd: watchers of an account that another node has by now
// are told so, also where the stream was about to say that it is alive.
func TestReleasedStreamsSayTheEnd(t *testing.T) {
	t.Parallel()
	for range 12 { // which of the two it finds first is chance
		s := newService(t, &memHistory{}, func(o *Options) { o.Heartbeat = time.Microsecond })
		f := s.follow(s.segment("Buyers", buyers).ID, "0-0", false)
		ok(t, s.node.Release(t.Context(), 0))
		if m, more := f.move(); !more || m.event != "end" {
			t.Errorf("have %+v", m)
		}
		f.close()
	}
}

// TestTransitionsHistoryDown: a stream that has to catch up waits for history
// with signs of life, and loses nothing.
func TestTransitionsHistoryDown(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, func(o *Options) { o.Heartbeat = 5 * time.Millisecond; o.Evaluation.Timeout = 200 * time.Millisecond })
	seg := s.segment("In Berlin", berlin)
	s.live(seg.ID)
	a := s.event(`{"event_type":"seen","user":{"email":"a@x.io","geo":{"city":"Berlin"}}}`)
	hold := make(chan struct{})
	for _, down := range []func(){func() { h.set(errors.New("disk on fire"), nil) }, func() { h.set(nil, hold) }} {
		down()
		f := s.follow(seg.ID, "0-0", true)
		for range 10 {
			if m, more := f.next(); !more || m.event != ": alive" {
				t.Fatalf("have %+v", m)
			}
		}
		b := s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"b%d@x.io","geo":{"city":"Berlin"}}}`, time.Now().UnixNano()))
		h.set(nil, nil)
		f.expect("entered", a, "profile", "")
		for m, more := f.move(); m.data.ProfileID != b; m, more = f.move() {
			if !more {
				t.Fatal("the stream ends")
			}
		}
		f.close()
	}
	close(hold)
}

// positionOf is the position of a transition as the stream writes it.
func positionOf(k query.TransitionKey) string { return fmt.Sprintf("%d-%d", k.Offset, k.Seq) }

// small makes watchers that are dropped when they lag behind by n.
func small(n int, watch func(uint64, string) (segments.Watch, bool), dropped *int, mu *sync.Mutex) func(uint64, string) (segments.Watch, bool) {
	return func(account uint64, id string) (segments.Watch, bool) {
		w, free := watch(account, id)
		if !free {
			return w, false
		}
		out, stop := make(chan live.Transition, n), make(chan struct{})
		var done sync.WaitGroup
		done.Go(func() {
			defer close(out)
			for {
				select {
				case e, open := <-w.Events:
					if !open {
						return
					}
					select {
					case out <- e:
						continue
					default:
					}
					mu.Lock()
					*dropped++
					mu.Unlock()
					return
				case <-stop:
					return
				}
			}
		})
		return segments.Watch{Events: out, From: w.From, Close: func() { close(stop); done.Wait(); w.Close() }}, true
	}
}

// TestTransitionsWhole: whatever happens at the same time, however slowly they
// read and wherever they come back, readers see every transition once and in
// order, as history has them.
func TestTransitionsWhole(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	h := &memHistory{}
	s := newService(t, h, func(o *Options) {
		o.Evaluation.Queue, o.Heartbeat, o.SignIn.SessionTTL = 4, 10*time.Millisecond, 10000*time.Hour
	})
	var mu sync.Mutex
	dropped, resumed := 0, 0
	s.api.watchTransitions = small(3, s.api.watchTransitions, &dropped, &mu)
	seg := s.segment("Pro or active", `{"match":"any","conditions":[{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"},
		{"kind":"activity","event":"item_purchased","window":{"last_days":1}}]}`)
	other := s.segment("Buyers", buyers)
	s.live(seg.ID)
	s.live(other.ID)

	write := func(n uint64, batches int) {
		r := rand.New(rand.NewPCG(seed, n))
		for range batches {
			var events []string
			for range 1 + r.IntN(20) {
				who := fmt.Sprintf(`"email":"p%d@x.io"`, r.IntN(30))
				switch r.IntN(20) {
				case 0:
					who += fmt.Sprintf(`,"external_id":"x%d"`, r.IntN(15)) // may merge
				case 1, 2:
					who = fmt.Sprintf(`"external_id":"x%d"`, r.IntN(15))
				}
				event := []string{"seen", "seen", "seen", "item_purchased"}[r.IntN(4)]
				events = append(events, fmt.Sprintf(`{"event_type":%q,"user":{%s,"attributes":{"plan":%q}}}`, event, who, []string{"pro", "free"}[r.IntN(2)]))
			}
			res, b := s.send("POST", "/api/v1/events/batch", `{"events":[`+strings.Join(events, ",")+`]}`, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
			if res.StatusCode != 202 {
				t.Errorf("a batch is answered %d %s", res.StatusCode, b)
			}
			s.clock.Advance(time.Duration(r.IntN(3)) * time.Hour)
		}
	}
	var writers, readers sync.WaitGroup
	var final string // the last position, once known
	finished := make(chan struct{})
	seen := make([][]sseMessage, 4)
	for n := range seen {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(100+n)))
			at, asHeader := "0-0", n%2 == 0
			for {
				f := s.follow(seg.ID, at, asHeader)
				for stay := 1 + r.IntN(60); stay > 0; stay-- {
					m, more := f.next()
					if !more {
						t.Error("a stream ends")
						return
					}
					if m.event != ": alive" {
						seen[n] = append(seen[n], m)
						at = m.id
					}
					if r.IntN(20) == 0 {
						time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond) // a reader that is slow now and then is what is tested
					}
					select {
					case <-finished:
						if at == final {
							f.close()
							return
						}
					default:
					}
				}
				f.close()
				mu.Lock()
				resumed++
				mu.Unlock()
				// Some have lost what they read last.
				if k := len(seen[n]); r.IntN(3) == 0 {
					k = max(0, k-r.IntN(40))
					seen[n], at = seen[n][:k], "0-0"
					if k > 0 {
						at = seen[n][k-1].id
					}
				}
			}
		})
	}
	for n := range 3 {
		writers.Go(func() { write(uint64(n), 200) })
	}
	writers.Wait()
	// One more that everybody waits for. Nothing falls due behind it.
	end := s.event(`{"event_type":"seen","user":{"email":"end@x.io","attributes":{"plan":"pro"}}}`)
	account, _ := tokens.Account(s.token, tokens.Session)
	var cut query.Cut
	ids := map[uint32]string{}
	eventually.Holds(t, "the last transition is in history", func() bool {
		ok(t, s.node.Read(t.Context(), account, func(v *resolver.View) error {
			cut = v.Cut()
			for _, x := range h.transitions(seg.ID) {
				if ids[x.Ordinal] = v.Profiles().ID(x.Ordinal).String(); ids[x.Ordinal] == end {
					final = positionOf(x.Key)
				}
			}
			return nil
		}))
		return final != ""
	})
	close(finished)
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("seed %d: readers do not come to the end", seed)
	}
	want, err := h.Transitions(t.Context(), query.TransitionsQuery{Cut: cut, Account: account, Segment: seg.ID, Limit: 1 << 20})
	ok(t, err)
	want = want[:slices.IndexFunc(want, func(x query.Transition) bool { return positionOf(x.Key) == final })+1]
	causes := map[segment.Cause]int{}
	for n := range seen {
		if len(seen[n]) != len(want) {
			t.Errorf("seed %d: a reader saw %d transitions, history has %d", seed, len(seen[n]), len(want))
		}
		for i := range min(len(want), len(seen[n])) {
			x, m := want[i], seen[n][i]
			if m.id != positionOf(x.Key) || (m.event == "entered") != x.Entered || m.data.ProfileID != ids[x.Ordinal] || m.data.Cause != x.Cause.String() || m.data.At != record.Time(x.AtMs) {
				t.Fatalf("seed %d: number %d is %+v, want %+v", seed, i, m, x)
			}
			causes[x.Cause]++
		}
	}
	if dropped == 0 || resumed < 10 || causes[segment.CauseExpiry] == 0 || causes[segment.CauseProfile] == 0 || causes[segment.CauseMerge] == 0 {
		t.Errorf("seed %d: %d dropped, %d resumed, causes %v: nothing was tested", seed, dropped, resumed, causes)
	}
	t.Logf("%d transitions, %d watchers dropped, %d times resumed, causes %v", len(want), dropped, resumed, causes)
}
