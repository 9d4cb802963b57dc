package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
)

// elements reads a document to its end and counts elements by name.
func elements(t *testing.T, doc []byte) (count map[string]int, texts []string) {
	t.Helper()
	count = map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(doc))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count, texts
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, doc)
		}
		switch x := tok.(type) {
		case xml.StartElement:
			count[x.Name.Local]++
			for _, a := range x.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Fatalf("%s has %s=%q", x.Name.Local, a.Name.Local, a.Value)
				}
				switch a.Name.Local {
				case "cx", "cy":
					if v, err := strconv.ParseFloat(a.Value, 64); err != nil || v < 0 || v > width {
						t.Errorf("a point at %s=%s is outside", a.Name.Local, a.Value)
					}
				}
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(x)); s != "" {
				texts = append(texts, s)
			}
		}
	}
}

func TestChartIsWellFormed(t *testing.T) {
	c := Chart{Title: `Cost < "20" & more`, XLabel: "profiles", YLabel: "CPU µs per event", LogX: true, LogY: true, Series: []Series{
		{Name: "a & b", Points: []Point{{1e4, 3.5}, {1e5, 4}, {1e6, 80}, {1e7, 0}, {math.NaN(), 1}}},
		{Name: "target", Points: []Point{{1e4, 1}, {1e6, 1}}, Dashed: true},
	}}
	count, texts := elements(t, c.SVG())
	if count["svg"] != 1 || count["polyline"] != 2 || count["circle"] != 3 {
		t.Errorf("elements: %v", count)
	}
	all := strings.Join(texts, "|")
	for _, want := range []string{c.Title, c.XLabel, c.YLabel, "a & b", "target", "|10k|", "|1M|"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in the drawing: %s", want, all)
		}
	}
}

// Nothing, a single point and equal points make a drawing too.
func TestChartOfLittle(t *testing.T) {
	for _, log := range []bool{false, true} {
		for _, points := range [][]Point{nil, {{5, 5}}, {{5, 5}, {5, 5}}, {{0, 0}}, {{-1, -1}, {2, -7}}} {
			c := Chart{LogX: log, LogY: log, Series: []Series{{Name: "x", Points: points}}}
			if count, _ := elements(t, c.SVG()); count["svg"] != 1 {
				t.Errorf("%v: %v", points, count)
			}
		}
	}
}

func TestPlaces(t *testing.T) {
	a := newAxis(true, 0, 100)
	a.include(1)
	a.include(100)
	if got := a.at(10) - (a.at(1)+a.at(100))/2; math.Abs(got) > 1e-9 {
		t.Errorf("10 is not in the middle of 1 and 100: off by %v", got)
	}
	b := newAxis(false, 100, 0)
	b.include(0)
	b.include(50)
	if b.at(0) != 100 || b.at(50) != 0 || b.at(25) != 50 {
		t.Errorf("linear: %v %v %v", b.at(0), b.at(25), b.at(50))
	}
	for v, want := range map[float64]string{0: "0", 0.05: "0.05", 999: "999", 1500: "1.5k", 2e6: "2M"} {
		if got := label(v); got != want {
			t.Errorf("label of %v: %q, want %q", v, got, want)
		}
	}
}
