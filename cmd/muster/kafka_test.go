package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	servers "github.com/musterhq/muster/internal/services"
)

// definitions are of all kinds; windows are whole days, which no event of
// pastEvents is near the edge of.
func definitions() (out []string) {
	activity := func(rest string) string { return `{"kind":"activity","event":` + rest + `}` }
	for _, days := range []int{1, 7, 30, 60} {
		out = append(out,
			activity(fmt.Sprintf(`"bought","window":{"last_days":%d}`, days)),
			activity(fmt.Sprintf(`"seen","window":{"last_days":%d},"count":{"op":">=","value":%d}`, days, 1+days/7)),
			activity(fmt.Sprintf(`"bought","window":{"last_days":%d},"aggregate":{"fn":"sum","property":"value","op":">=","value":%d}`, days, 10*days)))
	}
	return append(out,
		activity(`"bought","did":false`),
		activity(`"bought","aggregate":{"fn":"avg","property":"value","op":"<","value":40}`),
		activity(`"bought","aggregate":{"fn":"max","property":"value","op":">","value":95}`),
		activity(`"seen","aggregate":{"fn":"distinct","property":"page","op":"=","value":3}`),
		activity(`"seen","where":[{"property":"page","op":"in","value":["p1","p2"]}],"count":{"op":"=","value":2}`),
		`{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"}`,
		`{"match":"all","conditions":[`+activity(`"bought","window":{"last_days":30}`)+`,{"kind":"attribute","field":"email","op":"exists"}]}`,
		`{"match":"any","conditions":[`+activity(`"seen","window":{"last_days":7}`)+`,`+activity(`"bought","count":{"op":">=","value":4}`)+`]}`)
}

// pastEvents writes events of people who are known by several identifiers, so
// that profiles merge. All are at least half an hour off a whole day ago.
func pastEvents(seed uint64, n int, now time.Time) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for range n {
		who := rng.IntN(400)
		user := map[string]any{}
		if rng.IntN(3) > 0 {
			user["external_id"] = fmt.Sprintf("u%d", who)
		}
		if rng.IntN(2) == 0 || len(user) == 0 {
			user["email"] = fmt.Sprintf("u%d@x.io", who)
		}
		if rng.IntN(5) == 0 {
			user["attributes"] = map[string]any{"plan": []string{"free", "pro"}[rng.IntN(2)]}
		}
		event := map[string]any{"event_type": "seen", "properties": map[string]any{"page": fmt.Sprintf("p%d", rng.IntN(4))}}
		if rng.IntN(3) == 0 {
			event = map[string]any{"event_type": "bought", "properties": map[string]any{"value": float64(rng.IntN(10_000)) / 100}}
		}
		ago := time.Duration(rng.IntN(70))*24*time.Hour + 30*time.Minute + time.Duration(rng.Int64N(int64(23*time.Hour)))
		event["user"], event["timestamp"] = user, now.Add(-ago).UnixMilli()
		enc.Encode(event) // maps of texts and numbers
	}
	return out.Bytes()
}

// TestSameMembersInBothModes (R1, S1): the same events make the same members of
// every segment, whether saved before them, between or after, and whether their past
// comes from DuckDB or from ClickHouse.
func TestSameMembersInBothModes(t *testing.T) {
	t.Parallel()
	const seed = 7
	t.Logf("seed %d", seed)
	files := t.TempDir()
	now := time.Now()
	var halves [2]string
	for i := range halves {
		halves[i] = filepath.Join(files, fmt.Sprintf("%d.jsonl", i))
		ok(t, os.WriteFile(halves[i], pastEvents(seed+uint64(i), 1500, now), 0o600))
	}
	have := map[string][]string{}
	inModes(t, func(t *testing.T, args []string) {
		dir := t.TempDir()
		s := serve(t, dir, args...)
		bring := func(file string) {
			t.Helper()
			code, _, errs := muster(t, "", "import", "--to", s.origin, "--credentials", filepath.Join(dir, "credentials.json"), "--strict", file)
			if code != exitOK {
				t.Fatalf("import: %d %s", code, errs)
			}
		}
		var ids []string
		save := func(definitions []string) {
			t.Helper()
			for _, d := range definitions {
				var made struct {
					ID string `json:"_id"`
				}
				s.console("POST", "/segments", fmt.Sprintf(`{"name":"s%d","definition":%s}`, len(ids), d), &made)
				ids = append(ids, made.ID)
			}
		}
		all := definitions()
		save(all[:5])
		bring(halves[0])
		save(all[5:15])
		bring(halves[1])
		save(all[15:])
		members := 0
		var mode []string
		for _, id := range ids {
			s.untilLive(id)
			m := s.members(id)
			members += len(m)
			mode = append(mode, strings.Join(m, " "))
		}
		if members < 20*len(ids) {
			t.Errorf("%d segments have %d members in all, too few to tell anything", len(ids), members)
		}
		have[t.Name()[strings.LastIndex(t.Name(), "/")+1:]] = mode
		s.stop()
	})
	if have["kafka"] == nil {
		t.SkipNow()
	}
	for i, d := range definitions() {
		if a, b := have["files"][i], have["kafka"][i]; a != b {
			t.Errorf("%s:\nin files %s\nin Kafka %s", d, a, b)
		}
	}
}

// untilLive waits until a segment is built.
func (s *server) untilLive(id string) {
	s.t.Helper()
	eventually.Succeeds(s.t, func() error {
		var seg struct{ Status string }
		if s.console("GET", "/segments/"+id, "", &seg); seg.Status != "live" {
			return fmt.Errorf("segment %s is %s\n%s", id, seg.Status, s.log())
		}
		return nil
	})
}

// members are those of a segment by their identifiers, which both modes share.
func (s *server) members(id string) (out []string) {
	s.t.Helper()
	s.console("GET", "/catalog", "", nil) // signs in
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.origin+"/console/api/v1/export/segments/"+id, nil)
	ok(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(req)
	ok(s.t, err)
	defer res.Body.Close()
	for dec := json.NewDecoder(res.Body); ; {
		var p struct {
			Identities struct {
				Email      []string
				ExternalID []string `json:"external_id"`
			}
		}
		err := dec.Decode(&p)
		if err == io.EOF {
			break
		}
		ok(s.t, err)
		slices.Sort(p.Identities.Email)
		slices.Sort(p.Identities.ExternalID)
		out = append(out, fmt.Sprint(p.Identities.Email, p.Identities.ExternalID))
	}
	slices.Sort(out)
	return out
}

// TestOneNodeOwnsTheTopic (L1, L2): without a secret, a second node is turned away
// with the name of the first; it takes over once that has been frozen for longer than its
// session, has all that was acknowledged, and the first one ends when it wakes.
func TestOneNodeOwnsTheTopic(t *testing.T) {
	t.Parallel()
	args := append(kafkaArgs(t), "--kafka-session-timeout", "6s", "--log-level", "info")
	dir := t.TempDir()
	first := serve(t, dir, args...)
	for i := range 20 {
		first.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"},"idempotency_key":"k%d"}`, i, i))
	}
	second := filepath.Join(dir, "second")
	code, _, errs := muster(t, "", append([]string{"serve", "--data", second, "--listen", "127.0.0.1:0"}, args...)...)
	if code != exitFailed || !strings.Contains(errs, "belongs to another node") || !strings.Contains(errs, strings.TrimPrefix(first.origin, "http://")) {
		t.Errorf("a second node: %d %s", code, errs)
	}
	ok(t, os.WriteFile(filepath.Join(dir, "f.jsonl"), pastEvents(1, 1, time.Now()), 0o600))
	if code, _, errs := muster(t, "", append([]string{"import", "--data", second, filepath.Join(dir, "f.jsonl")}, args...)...); code != exitFailed || !strings.Contains(errs, "--to URL") {
		t.Errorf("import beside it: %d %s", code, errs)
	}
	if n := first.preview(`{"kind":"activity","event":"seen"}`); n != 20 {
		t.Errorf("%d profiles", n)
	}

	ok(t, first.Cmd.Process.Signal(syscall.SIGSTOP))
	defer first.Cmd.Process.Signal(syscall.SIGCONT)
	credentials, err := os.ReadFile(filepath.Join(dir, "credentials.json"))
	ok(t, err)
	other := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(other, "credentials.json"), credentials, 0o600))
	next := serve(t, other, args...)
	next.creds = first.creds
	if n := next.preview(`{"kind":"activity","event":"seen"}`); n != 20 {
		t.Errorf("%d profiles after the other node took over", n)
	}
	next.event(`{"event_type":"seen","user":{"email":"0@x.io"},"idempotency_key":"k0"}`)
	next.event(`{"event_type":"seen","user":{"email":"new@x.io"}}`)
	if n := next.events("seen"); n != 21 {
		t.Errorf("%d events after one was sent again and a new one", n)
	}

	ok(t, first.Cmd.Process.Signal(syscall.SIGCONT))
	// The node that was frozen does not continue beside the new one.
	if code := first.untilEnded(30 * time.Second); code != exitFailed || !strings.Contains(first.log(), "another has taken over") {
		t.Errorf("status %d:\n%s", code, first.log())
	}
	if n := next.events("seen"); n != 21 {
		t.Errorf("%d events", n)
	}
	next.stop()
}

// TestStandby (L1, L2): a node that shares the secret and finds no partition for
// itself hands on what comes to it, and takes over when the owner is killed.
func TestStandby(t *testing.T) {
	t.Parallel()
	args := append(kafkaArgs(t), "--kafka-session-timeout", "6s", "--kafka-partitions", "1", "--cluster-secret", clusterSecret)
	owner := serve(t, t.TempDir(), args...)
	standby := launch(t, t.TempDir(), args...)
	standby.untilReady()
	standby.creds = owner.creds
	for i := range 20 {
		standby.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"}}`, i))
	}
	if a, b := owner.events("seen"), standby.events("seen"); a != 20 || b != 20 {
		t.Errorf("%d and %d events", a, b)
	}
	owner.kill()
	begun := time.Now()
	event := func() int {
		return standby.call("POST", "/api/v1/events", `{"event_type":"seen","user":{"email":"new@x.io"},"idempotency_key":"once"}`, nil,
			"X-App-Id", standby.creds.AppID, "X-App-Secret", standby.creds.AppSecret)
	}
	status := 0
	eventually.Holds(t, "an event is not turned away", func() bool { status = event(); return status != http.StatusServiceUnavailable })
	if took := time.Since(begun); status != http.StatusAccepted || took > 50*time.Second {
		t.Errorf("an event is answered %d %v after the owner died\n%s", status, took, standby.log())
	}
	if n := standby.events("seen"); n != 21 {
		t.Errorf("%d events", n)
	}
	standby.stop()
}

// TestClusterFlags: what several nodes need is asked for before anything is
// opened.
func TestClusterFlags(t *testing.T) {
	t.Parallel()
	kafka := []string{"--kafka", "127.0.0.1:1", "--clickhouse", "clickhouse://127.0.0.1:1/x"}
	for says, args := range map[string][]string{
		"--cluster-secret needs --kafka":      {"--cluster-secret", clusterSecret},
		"--advertise needs --kafka":           {"--advertise", "a:1"},
		"give at least 16":                    append(slices.Clone(kafka), "--cluster-secret", "short"),
		"--advertise is \"a\"; use HOST:PORT": append(slices.Clone(kafka), "--cluster-secret", clusterSecret, "--advertise", "a"),
		"add --advertise HOST:PORT":           append(slices.Clone(kafka), "--cluster-secret", clusterSecret, "--listen", "0.0.0.0:0"),
		"--kafka-partitions: use at least 0":  append(slices.Clone(kafka), "--kafka-partitions", "-1"),
	} {
		code, _, errs := muster(t, "", append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data")}, args...)...)
		if code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%q: %d %s", args, code, errs)
		}
	}
}

// TestWhatDoesNotBelongTogether: directory, topic and database are each of one
// log; anything else is refused, and what is there continues.
func TestWhatDoesNotBelongTogether(t *testing.T) {
	t.Parallel()
	kafka, clickHouse := kafkaArgs(t), clickHouseArgs(t)
	dir := t.TempDir()
	refuse := func(what, says, data string, args ...string) {
		t.Helper()
		code, out, errs := muster(t, "", append([]string{"serve", "--data", filepath.Join(dir, data), "--listen", "127.0.0.1:0"}, args...)...)
		if code != exitFailed || !strings.Contains(errs, says) || strings.Contains(out, "ready") {
			t.Errorf("%s: %d %s %s", what, code, out, errs)
		}
	}
	run := func(data string, args ...string) {
		t.Helper()
		s := serve(t, filepath.Join(dir, data), args...)
		s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
		s.stop()
	}
	run("kafka", kafka...)
	refuse("no --kafka", "Start with --kafka", "kafka/data")
	otherTopic := slices.Clone(kafka)
	otherTopic[3] = servers.TopicName(t)
	refuse("another topic", "Name that one with --kafka", "kafka/data", otherTopic...)
	refuse("another log's database", "belongs to another log", "new", append(otherTopic[:4:4], kafka[4:]...)...)
	refuse("another log's database, by a log in files", "belongs to another log", "new2", kafka[4:]...)

	run("files")
	refuse("--kafka", "not in Kafka", "files/data", append(otherTopic[:4:4], clickHouse...)...)
	// A new history for an old state is filled from the log.
	s := serve(t, filepath.Join(dir, "files"), clickHouse...)
	profile := s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	eventually.Holds(t, "all events in the new history", func() bool {
		var x struct{ Data struct{ Events []any } }
		s.console("GET", "/catalog", "", nil) // signs in
		status := s.call("GET", api.Prefix+"/profiles/"+profile+"/events", "", &x, "Authorization", "Bearer "+s.token)
		return status == 200 && len(x.Data.Events) == 2
	})
	s.stop()

	// The log in files with history in ClickHouse.
	mixed := clickHouseArgs(t)
	run("mixed", mixed...)
	run("mixed", mixed...)

	three := servers.Topic(t, 3)
	refuse("a topic of three partitions", "does not suit", "three", append([]string{"--kafka", kafka[1], "--kafka-topic", three}, clickHouseArgs(t)...)...)
	run("kafka", kafka...)
}

// TestClickHouseAway (L2): while ClickHouse is away events are acknowledged,
// live segments counted and a kill survived; calls that need history answer 503.
// Then history catches up.
func TestClickHouseAway(t *testing.T) {
	t.Parallel()
	history := servers.OwnClickHouse(t)
	args := append(kafkaArgs(t)[:4:4], "--clickhouse", database(t, history.DSN(), "muster"), "--checkpoint-interval", "300ms")
	dir := t.TempDir()
	s := serve(t, dir, args...)
	var seg struct {
		ID    string `json:"_id"`
		Count int
	}
	s.console("POST", "/segments", `{"name":"seen","definition":{"kind":"activity","event":"seen"}}`, &seg)
	s.untilLive(seg.ID)
	sent := 0
	send := func(n int) (profile string) {
		t.Helper()
		for range n {
			profile = s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"}}`, sent))
			sent++
		}
		return profile
	}
	profile := send(50)
	ok(t, history.Kill())
	send(200)
	if s.console("GET", "/segments/"+seg.ID, "", &seg); seg.Count != sent {
		t.Errorf("the segment counts %d of %d", seg.Count, sent)
	}
	timeline := "/console/api/v1/profiles/" + profile + "/events"
	var refused struct{ Message string }
	for range 2 { // before it is known that rows are not taken, and after
		if status := s.call("GET", timeline, "", &refused, "Authorization", "Bearer "+s.token); status != http.StatusServiceUnavailable || !strings.Contains(refused.Message, "history is not available") {
			t.Errorf("a timeline without history: %d %s", status, refused.Message)
		}
		if status := s.call("GET", "/api/v1/analytics/events?event_type=seen", "", &refused, "Authorization", "Bearer "+s.creds.APIKey); status != http.StatusServiceUnavailable || !strings.Contains(refused.Message, "History is not available") {
			t.Errorf("analytics without history: %d %s", status, refused.Message)
		}
		s.untilMetric("muster_history_failing{partition=\"0\"} 1")
	}
	time.Sleep(500 * time.Millisecond) // the moment does not matter: mostly behind a checkpoint with what history lacks
	send(10)
	ok(t, history.Restart(t.Context()))
	s.untilMetric("muster_history_lag_records{partition=\"0\"} 0", "muster_history_failing{partition=\"0\"} 0")
	var events struct{ Events []struct{} }
	if s.console("GET", "/profiles/"+profile+"/events", "", &events); len(events.Events) != 1 {
		t.Errorf("%d events of a profile, want 1", len(events.Events))
	}
	// And once more with a kill of the node while history lags.
	ok(t, history.Kill())
	send(100)
	time.Sleep(500 * time.Millisecond) // as above: the moment of a kill is any
	s.kill()
	ok(t, history.Restart(t.Context()))
	s = serve(t, dir, args...)
	s.untilMetric("muster_history_lag_records{partition=\"0\"} 0")
	if n := s.preview(`{"kind":"activity","event":"seen","count":{"op":"=","value":1},"window":{"last_days":1}}`); n != sent {
		t.Errorf("history has %d profiles with one event each, want %d", n, sent)
	}
	s.stop()
}

// untilMetric waits until metrics have all the lines.
func (s *server) untilMetric(lines ...string) {
	s.t.Helper()
	eventually.Succeeds(s.t, func() error {
		res, err := http.Get(s.origin + "/metrics")
		ok(s.t, err)
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		ok(s.t, err)
		if slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(string(b), "\n"+line+"\n") }) {
			return fmt.Errorf("never: %q\n%s", lines, s.log())
		}
		return nil
	})
}
