package surface

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/server"
)

func serve(t *testing.T) server.Credentials {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /console/api/v1/session", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]string
		if json.NewDecoder(r.Body).Decode(&in) != nil || in["email"] != "a@b" || in["password"] != "right" {
			w.WriteHeader(401)
			io.WriteString(w, `{"status":"failure","message":"email or password is wrong","data":{}}`)
			return
		}
		io.WriteString(w, `{"status":"success","message":"","data":{"token":"t1"}}`)
	})
	mux.HandleFunc("POST /console/api/v1/segments/preview", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer t1":
			w.WriteHeader(401)
		case string(body) == `{"definition":{"kind":"x"}}`:
			io.WriteString(w, `{"status":"success","message":"","data":{"count":42,"sample":[]}}`)
		default:
			io.WriteString(w, `{"status":"success","message":"","data":{}}`)
		}
	})
	mux.HandleFunc("GET /console/api/v1/profiles", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"status":"success","message":"","data":{"profile_id":"prf_`+r.URL.Query().Get("external_id")+`"}}`)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return server.Credentials{BaseURL: s.URL + "/api/v1", ConsoleURL: s.URL + "/console", ConsoleEmail: "a@b", ConsolePassword: "right"}
}

func TestClient(t *testing.T) {
	ctx := context.Background()
	c, err := SignIn(ctx, serve(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Preview(ctx, `{"kind":"x"}`); n != 42 || err != nil {
		t.Errorf("preview: %d, %v", n, err)
	}
	if n, err := c.Preview(ctx, `{"kind":"y"}`); err == nil {
		t.Errorf("an answer without a count passed as %d", n)
	}
	if id, err := c.ProfileID(ctx, "c 1&x"); id != "prf_c 1&x" || err != nil {
		t.Errorf("profile: %q, %v", id, err)
	}
}

func TestSignInIsRefused(t *testing.T) {
	c := serve(t)
	c.ConsolePassword = "wrong"
	if _, err := SignIn(context.Background(), c); err == nil || !strings.Contains(err.Error(), "wrong") {
		t.Errorf("error %v", err)
	}
	c.BaseURL = "http://192.0.2.1/api/v1"
	if _, err := SignIn(context.Background(), c); err == nil || !strings.Contains(err.Error(), "IP:PORT") {
		t.Errorf("error %v", err)
	}
}
