package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
)

// Point is a measured value.
type Point struct{ X, Y float64 }

// Series is a line with a name in the legend.
type Series struct {
	Name   string
	Points []Point
	// Dashed lines are targets and comparisons.
	Dashed bool
}

// Chart is a line chart. Points that an axis cannot show (not finite, or not
// positive on a logarithmic one) are left out.
type Chart struct {
	Title, XLabel, YLabel string
	LogX, LogY            bool
	Series                []Series
}

// The measures of a drawing, in pixels.
const (
	width, height = 860, 480
	left, right   = 90, 250 // the legend stands at the right
	top, bottom   = 50, 60
)

// colours tell series apart also for those who do not see red and green
// (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999"}

// SVG is the drawing, a whole XML document.
func (c *Chart) SVG() []byte {
	x := newAxis(c.LogX, left, width-right)
	y := newAxis(c.LogY, height-bottom, top)
	for _, s := range c.Series {
		for _, p := range s.Points {
			if x.shows(p.X) && y.shows(p.Y) {
				x.include(p.X)
				y.include(p.Y)
			}
		}
	}
	if !c.LogY {
		y.include(0)
	}
	x.finish()
	y.finish()

	var b bytes.Buffer
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n")
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	text(&b, left, 28, "start", 16, c.Title)
	for _, t := range x.ticks() {
		px := x.at(t.value)
		line(&b, px, top, px, height-bottom, "#dddddd")
		if t.label != "" {
			text(&b, px, height-bottom+18, "middle", 12, t.label)
		}
	}
	for _, t := range y.ticks() {
		py := y.at(t.value)
		line(&b, left, py, width-right, py, "#dddddd")
		if t.label != "" {
			text(&b, left-8, py+4, "end", 12, t.label)
		}
	}
	line(&b, left, height-bottom, width-right, height-bottom, "#333333")
	line(&b, left, top, left, height-bottom, "#333333")
	text(&b, (left+width-right)/2, height-16, "middle", 13, c.XLabel)
	fmt.Fprintf(&b, `<g transform="translate(22 %d) rotate(-90)">`, (top+height-bottom)/2)
	text(&b, 0, 0, "middle", 13, c.YLabel)
	b.WriteString("</g>\n")
	for i, s := range c.Series {
		c.draw(&b, x, y, i, s)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (c *Chart) draw(b *bytes.Buffer, x, y *axis, i int, s Series) {
	colour := colours[i%len(colours)]
	dash := ""
	if s.Dashed {
		dash = ` stroke-dasharray="6 4"`
	}
	var path, dots bytes.Buffer
	for _, p := range s.Points {
		if !x.shows(p.X) || !y.shows(p.Y) {
			continue
		}
		px, py := x.at(p.X), y.at(p.Y)
		fmt.Fprintf(&path, "%.1f,%.1f ", px, py)
		if !s.Dashed {
			fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, px, py, colour)
		}
	}
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2"%s points="%s"/>`, colour, dash, bytes.TrimSpace(path.Bytes()))
	b.Write(dots.Bytes())
	ly := float64(top + 10 + 20*i)
	fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="2"%s/>`, width-right+16, ly, width-right+44, ly, colour, dash)
	text(b, width-right+50, ly+4, "start", 12, s.Name)
}

func line(b *bytes.Buffer, x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

func text(b *bytes.Buffer, x, y float64, anchor string, size int, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d">`, x, y, anchor, size)
	_ = xml.EscapeText(b, []byte(s)) // a buffer takes everything
	b.WriteString("</text>\n")
}

// axis maps values to pixels.
type axis struct {
	log      bool
	from, to float64 // pixels
	min, max float64 // of the values; of their logarithms on a logarithmic axis
}

func newAxis(log bool, from, to float64) *axis {
	return &axis{log: log, from: from, to: to, min: math.Inf(1), max: math.Inf(-1)}
}

func (a *axis) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.log || v > 0)
}

func (a *axis) scale(v float64) float64 {
	if a.log {
		return math.Log10(v)
	}
	return v
}

func (a *axis) include(v float64) {
	a.min, a.max = min(a.min, a.scale(v)), max(a.max, a.scale(v))
}

// finish widens the range to something that has a length.
func (a *axis) finish() {
	switch {
	case a.min > a.max:
		a.min, a.max = 0, 1
	case a.log:
		pad := max((a.max-a.min)*0.04, 0.1)
		a.min, a.max = a.min-pad, a.max+pad
	case a.min == a.max:
		a.max = a.min + max(1, math.Abs(a.min))
	default:
		a.max += (a.max - a.min) * 0.05
	}
}

func (a *axis) at(v float64) float64 {
	return a.from + (a.scale(v)-a.min)/(a.max-a.min)*(a.to-a.from)
}

type tick struct {
	value float64
	label string
}

func (a *axis) ticks() []tick {
	if !a.log {
		step := niceStep((a.max - a.min) / 6)
		var out []tick
		for i := math.Ceil(a.min / step); i*step <= a.max && len(out) < 50; i++ {
			out = append(out, tick{i * step, label(i * step)})
		}
		return out
	}
	var out []tick
	for e := math.Floor(a.min); e <= a.max; e++ {
		for _, m := range []float64{1, 2, 5} {
			l := e + math.Log10(m)
			if l < a.min || l > a.max || (m != 1 && a.max-a.min > 3) {
				continue
			}
			v := m * math.Pow(10, e)
			out = append(out, tick{v, label(v)})
		}
	}
	return out
}

// niceStep is the least of 1, 2, 5 times a power of ten that is not below v.
func niceStep(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= v {
			return m * p
		}
	}
	return 10 * p
}

// label is a number in few characters: 1500000 is 1.5M.
func label(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= u.size {
			return fmt.Sprintf("%.3g%s", v/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g", v)
}
