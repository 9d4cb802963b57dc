package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

// mediaTypes are those of the files of dist by the end of their names. The table is
// complete: that of the machine may differ.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".woff2": "font/woff2", ".json": "application/json",
	".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
}

// contentPolicy lets the page load its own files and call this service, and nothing
// else. Mantine sets style attributes; previews of messages are frames without a source.
const contentPolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; " +
	"frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// file is a file of the page. It does not change while the process runs. Its bytes stay in
// the executable: a copy of all files would take as much memory as they have, for browsers
// that mostly ask for the compressed ones.
type file struct {
	media string
	tree  fs.FS
	name  string        // of the file in tree
	tag   func() string // ETag of the body, made at the first request; that of the compressed body has "-gz" behind it
	// zipped compresses the body at the first request that takes it.
	zipped func() []byte
}

// newFile returns a file of tree, which must not lose it.
func newFile(tree fs.FS, name string) (*file, error) {
	media, ok := mediaTypes[path.Ext(name)]
	if !ok {
		return nil, fmt.Errorf("console: dist/%s has an extension whose media type is not known; add it to mediaTypes", name)
	}
	f := &file{media: media, tree: tree, name: name}
	f.tag = sync.OnceValue(func() string {
		sum := sha256.Sum256(f.read())
		return hex.EncodeToString(sum[:16])
	})
	f.zipped = sync.OnceValue(func() []byte {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		check(err)
		_, err = w.Write(f.read())
		check(err)
		check(w.Close())
		return bytes.Clone(b.Bytes()) // a buffer keeps up to twice as much
	})
	return f, nil
}

// read returns a copy of the file, which lasts as long as an answer.
func (f *file) read() []byte {
	b, err := fs.ReadFile(f.tree, f.name)
	check(err)
	return b
}

// check panics for an error of the embedded files or of a buffer, which have none.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// serve answers GET and HEAD. Browsers keep the file and ask each time whether it is
// the same: names do not change between versions.
func (f *file) serve(rc *fasthttp.RequestCtx) {
	h := &rc.Response.Header
	zipped, tag := false, `"`+f.tag()+`"`
	if f.compressible() {
		h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
		if rc.Request.Header.HasAcceptEncoding("gzip") {
			zipped, tag = true, `"`+f.tag()+`-gz"`
			h.Set(fasthttp.HeaderContentEncoding, "gzip")
		}
	}
	h.Set(fasthttp.HeaderETag, tag)
	h.Set(fasthttp.HeaderCacheControl, "no-cache")
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set(fasthttp.HeaderXFrameOptions, "DENY") // for browsers that do not know frame-ancestors
	h.Set(fasthttp.HeaderContentSecurityPolicy, contentPolicy)
	if known(string(rc.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), tag) {
		h.Del(fasthttp.HeaderContentEncoding)
		rc.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	rc.SetContentType(f.media)
	if zipped {
		rc.Response.SetBodyRaw(f.zipped())
	} else {
		rc.Response.SetBodyRaw(f.read())
	}
}

func (f *file) compressible() bool {
	return strings.HasPrefix(f.media, "text/") || strings.Contains(f.media, "json") || f.media == "image/svg+xml"
}

// known reports whether the header If-None-Match names the tag. Tags are compared
// weakly, as the header demands.
func known(header, tag string) bool {
	for t := range strings.SplitSeq(header, ",") {
		if t = strings.TrimPrefix(strings.TrimSpace(t), "W/"); t == tag || t == "*" {
			return true
		}
	}
	return false
}
