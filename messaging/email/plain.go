package email

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxText bounds a derived text, in bytes.
const maxText = 1 << 20

// TextOf derives a plain text from HTML: paragraphs and rows become lines,
// items start with "- ", links are followed by their address in brackets,
// pictures give their alternative text. Styles, scripts and the head are left
// out.
func TextOf(doc string) string {
	w := textWriter{}
	z := html.NewTokenizer(strings.NewReader(doc))
	skip, skipped := atom.Atom(0), 0 // an element left out, and its depth in itself
	var links []string
	for w.b.Len() < maxText {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		if kind == html.TextToken {
			if skip == 0 {
				w.text(string(z.Text()))
			}
			continue
		}
		if kind != html.StartTagToken && kind != html.EndTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		t := z.Token()
		start, end := kind == html.StartTagToken, kind == html.EndTagToken
		if skip != 0 {
			switch {
			case t.DataAtom == skip && start:
				skipped++
			case t.DataAtom == skip && end:
				if skipped--; skipped == 0 {
					skip = 0
				}
			}
			continue
		}
		switch t.DataAtom {
		case atom.Style, atom.Script, atom.Head, atom.Title, atom.Template, atom.Noscript:
			if start {
				skip, skipped = t.DataAtom, 1
			}
		case atom.Br:
			w.lines(1)
		case atom.Hr:
			w.lines(2)
		case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Table, atom.Ul, atom.Ol, atom.Blockquote:
			w.lines(2)
		case atom.Div, atom.Tr, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Pre:
			w.lines(1)
		case atom.Td, atom.Th:
			w.space = true
		case atom.Li:
			if w.lines(1); start {
				w.text("- ")
			}
		case atom.Img:
			if alt := attr(t, "alt"); alt != "" {
				w.text(alt)
			}
		case atom.A:
			switch {
			case start && len(links) < 64:
				links = append(links, attr(t, "href"))
			case end && len(links) > 0:
				href := links[len(links)-1]
				links = links[:len(links)-1]
				if strings.HasPrefix(href, "http") && !strings.HasSuffix(w.b.String()[max(0, w.b.Len()-len(href)):], href) {
					w.text(" (" + href + ")")
				}
			}
		}
	}
	return strings.TrimSpace(w.b.String()) + "\n"
}

func attr(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return strings.TrimSpace(a.Val)
		}
	}
	return ""
}

// textWriter collapses white space as browsers do.
type textWriter struct {
	b     strings.Builder
	space bool // a space is due before the next word
	due   int  // line breaks due before the next word
}

func (w *textWriter) lines(n int) {
	w.due, w.space = max(w.due, n), false
}

func (w *textWriter) text(s string) {
	for _, r := range s {
		switch r {
		case ' ', '\t', '\n', '\r', '\f', '\u00a0':
			w.space = true
			continue
		case '\u200b', '\u200c', '\u00ad', '\u034f', '\ufeff':
			continue // fillers of preview texts
		}
		if w.b.Len() > 0 {
			for range w.due {
				w.b.WriteByte('\n')
			}
			if w.due == 0 && w.space {
				w.b.WriteByte(' ')
			}
		}
		w.due, w.space = 0, false
		w.b.WriteRune(r)
	}
}
