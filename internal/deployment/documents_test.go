package deployment

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestLinksOfDocuments: what a document links to in this repository is there, and so is
// the heading that a link names.
func TestLinksOfDocuments(t *testing.T) {
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skip("this is no git checkout")
	}
	files := strings.Fields(string(out))
	fenced := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	links := 0
	for _, file := range files {
		if path.Ext(file) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, file), ""), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue // another site
			}
			links++
			target := file
			if to != "" {
				target = path.Join(path.Dir(file), to)
			}
			there := func(f string) bool { return f == target || strings.HasPrefix(f, target+"/") }
			if !slices.ContainsFunc(files, there) {
				t.Errorf("%s links to %s, which is not there", file, m[1])
				continue
			}
			if anchor != "" && path.Ext(target) == ".md" && !slices.Contains(headings(read(t, target)), anchor) {
				t.Errorf("%s links to %s: %s has no such heading", file, m[1], target)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// headings are those of a document as links name them.
func headings(text string) (out []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		out = append(out, strings.Map(func(c rune) rune {
			switch {
			case c == ' ':
				return '-'
			case c == '-' || c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c):
				return unicode.ToLower(c)
			}
			return -1
		}, m[1]))
	}
	return out
}

// TestDecisionsHaveDateAndStatus: each decision says when it was taken, and whether it holds.
func TestDecisionsHaveDateAndStatus(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "docs/decisions/*.md"))
	ok(t, err)
	if len(paths) < 60 {
		t.Errorf("only %d decisions were found", len(paths))
	}
	head := regexp.MustCompile(`^# (\d{4}): .+\n\nDate: \d{4}-\d\d-\d\d\. Status: (accepted|superseded)[^\n]*\.\n`)
	for _, p := range paths {
		b, err := os.ReadFile(p)
		ok(t, err)
		if m := head.FindSubmatch(b); m == nil || !strings.HasPrefix(filepath.Base(p), string(m[1])+"-") {
			t.Errorf("%s does not begin with number, title, date and status", filepath.Base(p))
		}
	}
}
