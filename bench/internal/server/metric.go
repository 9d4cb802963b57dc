package server

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Metric reads a metric's values from what GET /metrics answered, by their labels, ""
// for none.
func Metric(in io.Reader, name string) (map[string]float64, error) {
	out := map[string]float64{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		rest, is := strings.CutPrefix(lines.Text(), name)
		if !is || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		at := strings.LastIndexByte(rest, ' ')
		value, err := strconv.ParseFloat(rest[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", lines.Text(), err)
		}
		out[strings.Trim(rest[:at], "{}")] = value
	}
	return out, lines.Err()
}
