package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Get asks a server, HOST:PORT, for a page of at most so many bytes.
func Get(ctx context.Context, address, path string, most int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Close = true // servers come and go
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("GET %s: %w", path, err)
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("GET %s: status %d: %.200s", path, res.StatusCode, b)
	case len(b) > most:
		return nil, fmt.Errorf("GET %s: over %d bytes", path, most)
	}
	return b, nil
}

// Metric reads a metric's values from what GET /metrics answered, by their labels, ""
// for none.
func Metric(text []byte, name string) (map[string]float64, error) {
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		rest, is := strings.CutPrefix(line, name)
		if !is || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		at := strings.LastIndexByte(rest, ' ')
		value, err := strconv.ParseFloat(rest[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		out[strings.Trim(rest[:at], "{}")] = value
	}
	return out, nil
}
