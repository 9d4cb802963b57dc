package ingest

import "github.com/musterhq/muster/eventlog"

// looksLikeSeconds reports whether a number of ten digits, a time in early 1970 in
// milliseconds, was rather meant as Unix seconds, which have ten from 2001 to 2286.
func looksLikeSeconds(n int64) bool { return n >= 1_000_000_000 && n < 10_000_000_000 }

// timestamp reads the member timestamp of an event at i.
func (d *Decoder) timestamp(i int, ev *eventlog.Event) int {
	s := d.scan
	var ms int64
	ok, seconds := false, false
	var next int
	switch c := s.Byte(i); {
	case c == '"':
		var text []byte
		if text, next = s.Text(i); next < 0 || d.refuseScanned("timestamp") {
			return next
		}
		ms, ok = parseRFC3339(text)
	case c-'0' < 10:
		var text []byte
		if text, next = s.Value(i, 1); next < 0 || d.refuseScanned("timestamp") {
			return next
		}
		ms, ok = parseMillis(text)
		seconds = ok && looksLikeSeconds(ms)
	case c == 'n' && d.kind != eventlog.KindImport:
		return s.Skip(i) // as good as absent
	default:
		next = s.Skip(i)
	}
	switch {
	case next < 0:
	case !ok || ms < 0:
		d.refuse(`timestamp must be a time since 1970 in RFC 3339 ("2024-05-31T12:30:00Z") or whole Unix milliseconds (1717158600000)`)
	case seconds:
		d.refuse("timestamp is in Unix seconds, it seems; send milliseconds, %d000, or RFC 3339", ms)
	case ms > d.nowMs:
		d.refuse("timestamp is in the future; send past events only, and check the clock and the unit (Unix milliseconds)")
	default:
		ev.TimeMs, ev.HasTime = ms, true
	}
	return next
}

// parseMillis reads a number of Unix milliseconds written in digits alone.
func parseMillis(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > 15 {
		return 0, false
	}
	var ms int64
	for _, c := range text {
		if c-'0' > 9 {
			return 0, false
		}
		ms = ms*10 + int64(c-'0')
	}
	return ms, true
}

// parseRFC3339 reads a time as RFC 3339 writes it, with the letters in either
// case or a space between date and time. Fractions below a millisecond are cut
// off; a leap second is the second that follows it.
func parseRFC3339(text []byte) (ms int64, ok bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || len(text) > 64 {
		return 0, false
	}
	p := timeParser{text: text}
	year := p.digits(4)
	p.expect("-")
	month := p.digits(2)
	p.expect("-")
	day := p.digits(2)
	p.expect("Tt ")
	hour := p.digits(2)
	p.expect(":")
	minute := p.digits(2)
	p.expect(":")
	second := p.digits(2)
	if p.bad || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	fraction := 0
	if p.next(".") {
		n := 0
		for scale := 100; len(p.text) > 0 && p.text[0]-'0' <= 9; scale /= 10 {
			fraction += int(p.text[0]-'0') * scale
			p.text = p.text[1:]
			n++
		}
		p.bad = p.bad || n == 0
	}
	offset := 0
	if !p.next("Zz") {
		sign := 1
		if p.next("-") {
			sign = -1
		} else {
			p.expect("+")
		}
		h := p.digits(2)
		p.expect(":")
		m := p.digits(2)
		if h > 23 || m > 59 {
			return 0, false
		}
		offset = sign * (h*60 + m)
	}
	if p.bad || len(p.text) > 0 {
		return 0, false
	}
	minutes := (daysSince1970(year, month, day)*24+int64(hour))*60 + int64(minute-offset)
	return (minutes*60+int64(second))*1000 + int64(fraction), true
}

// timeParser eats text from the front; bad is set once it does not fit.
type timeParser struct {
	text []byte
	bad  bool
}

func (p *timeParser) digits(n int) int {
	if len(p.text) < n {
		p.bad = true
		return 0
	}
	v := 0
	for _, c := range p.text[:n] {
		p.bad = p.bad || c-'0' > 9
		v = v*10 + int(c-'0')
	}
	p.text = p.text[n:]
	return v
}

// next eats one byte if it is one of set.
func (p *timeParser) next(set string) bool {
	for i := range len(set) {
		if len(p.text) > 0 && p.text[0] == set[i] {
			p.text = p.text[1:]
			return true
		}
	}
	return false
}

func (p *timeParser) expect(set string) {
	if !p.next(set) {
		p.bad = true
	}
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysSince1970 counts the days to a date of the Gregorian calendar. Years
// begin in March here, so that the leap day is a year's last.
func daysSince1970(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	y := int64(year)
	return 365*y + floorDiv(y, 4) - floorDiv(y, 100) + floorDiv(y, 400) + int64(153*(month-3)+2)/5 + int64(day) - 719_469
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// ParseTime reads a time in RFC 3339 as events have it, in Unix milliseconds.
func ParseTime(text []byte) (ms int64, ok bool) { return parseRFC3339(text) }
