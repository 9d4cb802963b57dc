package console

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// Path is where the page is served.
const Path = "/console"

// apiPath is where the console API is; no path at or below it is one of the page.
const apiPath = Path + "/api"

// The built page. `make console` writes it.
//
//go:embed all:dist
var dist embed.FS

// Register serves the embedded page on a router: its files below /console, its
// document at /console and at every path of a screen, and / leads there. What the
// router does not know otherwise is left to its NotFound of before.
func Register(r *router.Router) error {
	tree, err := fs.Sub(dist, "dist")
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	return register(r, tree)
}

func register(r *router.Router, tree fs.FS) error {
	files, err := findFiles(tree)
	if err != nil {
		return err
	}
	document := files["index.html"]
	if document == nil {
		return fmt.Errorf("console: dist/index.html is missing; run make console")
	}
	both := func(path string, h fasthttp.RequestHandler) {
		r.GET(path, h)
		r.HEAD(path, h)
	}
	both("/", toConsole)
	both(Path, document.serve)
	for name, f := range files {
		both(Path+"/"+name, f.serve)
	}
	// Not a route: a pattern for all paths below /console would hide from the router
	// that the console API has a path, but not for the method.
	otherwise := r.NotFound
	r.NotFound = func(rc *fasthttp.RequestCtx) {
		if (rc.IsGet() || rc.IsHead()) && isScreen(string(rc.Path())) {
			document.serve(rc)
			return
		}
		otherwise(rc)
	}
	return nil
}

// isScreen reports whether a path may be that of a screen: below /console, not of the
// API, and without the extension of a file.
func isScreen(p string) bool {
	return strings.HasPrefix(p, Path+"/") && p != apiPath && !strings.HasPrefix(p, apiPath+"/") && path.Ext(p) == ""
}

// toConsole leads from / to the page.
func toConsole(rc *fasthttp.RequestCtx) {
	rc.Response.Header.Set(fasthttp.HeaderLocation, Path)
	rc.SetStatusCode(fasthttp.StatusFound)
}

// findFiles finds the files of the built page, by names with slashes. Names that begin
// with a dot are no part of it.
func findFiles(tree fs.FS) (map[string]*file, error) {
	files := map[string]*file{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		files[name], err = newFile(tree, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("console: the built page: %w", err)
	}
	return files, nil
}
