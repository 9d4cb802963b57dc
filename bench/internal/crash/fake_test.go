package crash

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the driver "duckdb"
)

// fake is the smallest server that keeps the promises a run checks, so that the
// run can be tried on servers that break them. Its rows are in a file of lines;
// when it stops it makes history of them.
type fake struct {
	flaw    string
	data    string
	file    *os.File
	pending bytes.Buffer // flaw "late": acknowledged, not written

	mu       sync.Mutex
	rows     []fakeRow
	keys     map[string]uint32
	profiles map[string]uint32 // by identifier
	next     uint32
	boot     int64
}

type fakeRow struct {
	key, kind              string
	ordinal                uint32
	value                  int
	external, email, phone string
}

// The ways a fake can break its promises.
const (
	honest    = "honest"
	late      = "late"      // answers before it writes
	forgetful = "forgetful" // loses idempotency keys when it restarts
	renaming  = "renaming"  // gives other profile ids after a restart
	miscounts = "miscounts" // segment counts are off by one
	// miscountsLive: those of segments that are saved are.
	miscountsLive = "miscounts live"
	hoarding      = "hoarding" // stores something that was not sent
)

func runFake(flaw string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	data := flags.String("data", "", "")
	listen := flags.String("listen", "", "")
	credentials := flags.String("credentials", "", "")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	f := &fake{flaw: flaw, data: *data, keys: map[string]uint32{}, profiles: map[string]uint32{}, boot: time.Now().UnixNano()}
	if err := f.open(); err != nil {
		return err
	}
	text := fmt.Sprintf(`{"base_url":"http://%[1]s/api/v1","console_url":"http://%[1]s/console","app_id":"a","app_secret":"s","console_email":"e","console_password":"p"}`, *listen)
	if err := os.WriteFile(*credentials, []byte(text), 0o600); err != nil {
		return err
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM)
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- http.Serve(ln, f.mux()) }()
	fmt.Println("ready on", *listen)
	select {
	case <-stopped:
		return f.stop()
	case err := <-failed:
		return err
	}
}

func (f *fake) open() error {
	if err := os.MkdirAll(f.data, 0o700); err != nil {
		return err
	}
	path := filepath.Join(f.data, "rows.csv")
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	old = old[:bytes.LastIndexByte(old, '\n')+1] // a torn line was not acknowledged
	// Only cut: a start may be killed, and what is rewritten would be lost.
	if err := os.Truncate(path, int64(len(old))); err != nil && !os.IsNotExist(err) {
		return err
	}
	for line := range strings.Lines(string(old)) {
		c := strings.Split(strings.TrimSpace(line), ",")
		ordinal, _ := strconv.Atoi(c[2])
		value, _ := strconv.Atoi(c[3])
		f.add(fakeRow{c[0], c[1], uint32(ordinal), value, c[4], c[5], c[6]})
	}
	if f.flaw == forgetful {
		clear(f.keys)
	}
	f.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return err
}

func (f *fake) add(r fakeRow) {
	f.rows = append(f.rows, r)
	f.keys[r.key] = r.ordinal
	for _, id := range []string{r.external, r.email, r.phone} {
		if id != "" {
			f.profiles[id] = r.ordinal
		}
	}
	f.next = max(f.next, r.ordinal+1)
}

func (f *fake) profileID(ordinal uint32) string {
	if f.flaw == renaming {
		return fmt.Sprintf("prf_%d_%d", f.boot, ordinal)
	}
	return fmt.Sprintf("prf_%d", ordinal)
}

type fakeEvent struct {
	EventType string `json:"event_type"`
	User      struct {
		ExternalID string `json:"external_id"`
		Email      string `json:"email"`
		Phone      string `json:"phone"`
	} `json:"user"`
	Properties struct {
		Value int `json:"value"`
	} `json:"properties"`
	Key string `json:"idempotency_key"`
}

// take stores events and returns their answers.
func (f *fake) take(events []fakeEvent) ([]map[string]any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines bytes.Buffer
	var results []map[string]any
	for _, e := range events {
		ordinal, known := f.keys[e.Key]
		if !known {
			ordinal, known = f.profiles[e.User.Email]
			if !known {
				ordinal, known = f.profiles[e.User.ExternalID]
			}
			if !known {
				ordinal, known = f.profiles[e.User.Phone]
			}
			if !known {
				ordinal = f.next
			}
			r := fakeRow{e.Key, e.EventType, ordinal, e.Properties.Value, e.User.ExternalID, e.User.Email, e.User.Phone}
			f.add(r)
			fmt.Fprintf(&lines, "%s,%s,%d,%d,%s,%s,%s\n", r.key, r.kind, r.ordinal, r.value, r.external, r.email, r.phone)
		}
		results = append(results, map[string]any{"success": true, "profile_id": f.profileID(ordinal), "error": nil})
	}
	if f.flaw == late {
		f.pending.Write(lines.Bytes())
		if f.pending.Len() < 20_000 {
			return results, nil
		}
		lines, f.pending = f.pending, bytes.Buffer{}
	}
	_, err := f.file.Write(lines.Bytes())
	return results, err
}

func (f *fake) mux() http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, v any) {
		text, _ := json.Marshal(v)
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(status)
		w.Write(text)
	}
	mux.HandleFunc("POST /api/v1/events", func(w http.ResponseWriter, r *http.Request) {
		var e fakeEvent
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &e); err != nil {
			answer(w, 400, err.Error())
			return
		}
		results, err := f.take([]fakeEvent{e})
		if err != nil {
			answer(w, 503, err.Error())
			return
		}
		answer(w, 202, results[0])
	})
	mux.HandleFunc("POST /api/v1/events/batch", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Events []fakeEvent `json:"events"`
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &in); err != nil {
			answer(w, 400, err.Error())
			return
		}
		results, err := f.take(in.Events)
		if err != nil {
			answer(w, 503, err.Error())
			return
		}
		answer(w, 202, map[string]any{"success": true, "accepted": len(results), "total": len(results), "results": results})
	})
	data := func(w http.ResponseWriter, v any) {
		answer(w, 200, map[string]any{"status": "success", "message": "", "data": v})
	}
	mux.HandleFunc("POST /console/api/v1/session", func(w http.ResponseWriter, _ *http.Request) {
		data(w, map[string]any{"token": "t"})
	})
	mux.HandleFunc("GET /console/api/v1/profiles", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		data(w, map[string]any{"profile_id": f.profileID(f.profiles[r.URL.Query().Get("external_id")])})
	})
	mux.HandleFunc("POST /console/api/v1/segments", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		data(w, map[string]any{"_id": hex.EncodeToString(body)}) // survives a kill
	})
	mux.HandleFunc("GET /console/api/v1/segments/{id}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := hex.DecodeString(r.PathValue("id"))
		n := f.count(body)
		if f.flaw == miscountsLive {
			n--
		}
		data(w, map[string]any{"status": "live", "count": n})
	})
	mux.HandleFunc("POST /console/api/v1/segments/preview", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := f.count(body)
		if f.flaw == miscounts {
			n++
		}
		data(w, map[string]any{"count": n})
	})
	return mux
}

// count answers the few kinds of definitions a run asks for.
func (f *fake) count(body []byte) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	type compare struct {
		Op    string `json:"op"`
		Value int    `json:"value"`
	}
	var in struct {
		Definition struct {
			Kind, Event      string
			Count, Aggregate *compare
		} `json:"definition"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return -1
	}
	d := in.Definition
	times, sum := map[uint32]int{}, map[uint32]int{}
	for _, r := range f.rows {
		if d.Kind == "attribute" || r.kind == d.Event {
			times[r.ordinal]++
			sum[r.ordinal] += r.value
		}
	}
	c, of := compare{">=", 1}, times
	if d.Count != nil {
		c = *d.Count
	} else if d.Aggregate != nil {
		c, of = *d.Aggregate, sum
	}
	n := 0
	for _, v := range of {
		if v == c.Value || v > c.Value && c.Op == ">=" {
			n++
		}
	}
	return n
}

// stop makes history of the rows.
func (f *fake) stop() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.file.Write(f.pending.Bytes())
	if f.flaw == hoarding {
		fmt.Fprintf(f.file, "k0-99999999,%s,0,1,x,,\n", typeSure)
	}
	db, err := sql.Open("duckdb", filepath.Join(f.data, "history.duckdb"))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(fmt.Sprintf(`CREATE TABLE events AS SELECT * FROM read_csv('%s', header = false, columns = {
		'idempotency_key': 'VARCHAR', 'event_type': 'VARCHAR', 'ordinal': 'UINTEGER', 'value': 'INTEGER',
		'external_id': 'VARCHAR', 'email': 'VARCHAR', 'phone': 'VARCHAR'})`, filepath.Join(f.data, "rows.csv")))
	return err
}
