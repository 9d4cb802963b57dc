package generators

import (
	"io"
	"net/http"
	"os"
	"testing"
	"time"
)

// fetch writes the document that a server answers to a file.
func fetch(t *testing.T, origin, file string) []byte {
	t.Helper()
	c := &http.Client{Timeout: time.Minute}
	res, err := c.Get(origin + "/openapi.json")
	ok(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(t, err)
	if res.StatusCode != 200 {
		t.Fatalf("/openapi.json: %s", res.Status)
	}
	ok(t, os.WriteFile(file, b, 0o644))
	return b
}
