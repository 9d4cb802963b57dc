package ingest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into testdata")

// TestSurfaceB runs the stories in testdata: requests with the exact answers
// and the exact records.
//
//	== a story, with a server of its own
//	> event | batch | import, and optional lines "Name: value" for headers
//	> X-App-Id: app_2
//	{the body}
//	----
//	202, and the headers that matter
//	{the answer}
//	| one line for each event stored
func TestSurfaceB(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, stories, _ := strings.Cut(string(text), "\n== ")
			got := strings.TrimRight(head, "\n") + "\n"
			for _, story := range strings.Split(stories, "\n== ") {
				title, steps, _ := strings.Cut(story, "\n")
				got += "\n== " + title + "\n"
				t.Run(title, func(t *testing.T) { got += tell(t, steps) })
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Error("answers differ; see above, or run with -rewrite and look at the difference")
			}
		})
	}
}

// tell runs the steps of one story and returns them with the answers they got.
func tell(t *testing.T, steps string) string {
	node := newFakeNode()
	opts := testOptions()
	opts.BodyBytes, opts.DrainBytes = 4096, 4*4096
	opts.Limits = Limits{Events: 5, Depth: 6, TypeBytes: 20, IdentifierBytes: 30, NameBytes: 10, KeyBytes: 12, ObjectBytes: 120}
	client, _ := serve(t, node, opts)
	var got strings.Builder
	for _, step := range strings.Split("\n"+steps, "\n> POST ")[1:] {
		request, want, found := strings.Cut(step+"\n", "\n----\n")
		if !found {
			t.Fatalf("a request without ----: %q", step)
		}
		var answer strings.Builder
		exchange(t, client, node, request, &answer)
		if strings.TrimSpace(want) != strings.TrimSpace(answer.String()) && !*rewrite {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", request, answer.String(), want)
		}
		got.WriteString("> POST " + request + "\n----\n" + answer.String())
	}
	return got.String()
}

func exchange(t *testing.T, client *fasthttp.Client, node *fakeNode, request string, got *strings.Builder) {
	lines := strings.Split(request, "\n")
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI("http://test/api/v1/" + lines[0])
	req.Header.SetMethod("POST")
	req.Header.Set("X-App-Id", "app_1")
	req.Header.Set("X-App-Secret", testSecret)
	req.Header.SetContentType("application/json")
	lines = lines[1:]
	for len(lines) > 0 && strings.HasPrefix(lines[0], "> ") {
		name, value, _ := strings.Cut(lines[0][2:], ":")
		switch value = strings.TrimSpace(value); {
		case name == "Method":
			req.Header.SetMethod(value)
		case name == "Content-Type" && value == "":
			req.Header.SetNoDefaultContentType(true)
			req.Header.Del(name)
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
		lines = lines[1:]
	}
	body := strings.Join(lines, "\n")
	// In stories, \xNN stands for a byte and {…*n} for text n times.
	body = expand(t, body)
	req.SetBodyString(body)
	before := len(node.records)
	if err := client.Do(req, resp); err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	fmt.Fprintf(got, "%d", resp.StatusCode())
	for _, name := range []string{"Retry-After", "Allow", "Accept-Encoding", "Connection"} {
		if v := resp.Header.Peek(name); len(v) > 0 {
			fmt.Fprintf(got, " %s: %s", name, v)
		}
	}
	if ct := string(resp.Header.ContentType()); ct != "application/json" {
		t.Errorf("%s: Content-Type %s", request, ct)
	}
	if !json.Valid(resp.Body()) {
		t.Errorf("%s: the answer is not JSON: %s", request, resp.Body())
	}
	fmt.Fprintf(got, "\n%s\n", resp.Body())
	for _, record := range node.records[before:] {
		for line := range strings.Lines(record) {
			got.WriteString("| " + line)
		}
	}
}

// expand replaces «xx» by bytes in hexadecimal and «text*n» by text n times.
func expand(t testing.TB, s string) string {
	var b bytes.Buffer
	for {
		before, rest, found := strings.Cut(s, "«")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		code, after, _ := strings.Cut(rest, "»")
		s = after
		if text, count, ok := strings.Cut(code, "*"); ok {
			var n int
			if _, err := fmt.Sscan(count, &n); err != nil {
				t.Fatal(err)
			}
			b.WriteString(strings.Repeat(text, n))
			continue
		}
		var raw []byte
		if _, err := fmt.Sscanf(code, "%x", &raw); err != nil {
			t.Fatal(err)
		}
		b.Write(raw)
	}
}

// readStories returns the steps of all stories in a file.
func readStories(t testing.TB, file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n> POST ")[1:]
}
