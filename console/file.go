package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// file is a file of the page. It does not change while the process runs.
type file struct {
	media string
	body  []byte
	tag   string // ETag of body; that of the compressed body has "-gz" behind it
	// zipped compresses the body at the first request that takes it.
	zipped func() []byte
}

func newFile(name string, body []byte) (*file, error) {
	media, ok := mediaTypes[path.Ext(name)]
	if !ok {
		return nil, fmt.Errorf("console: dist/%s has an extension whose media type is not known; add it to mediaTypes", name)
	}
	sum := sha256.Sum256(body)
	return &file{media: media, body: body, tag: hex.EncodeToString(sum[:16]), zipped: sync.OnceValue(func() []byte { return zip(body) })}, nil
}

// zip compresses a body as far as gzip can.
func zip(body []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// serve answers GET and HEAD. Browsers keep the file and ask each time whether it is
// the same: names do not change between versions.
func (f *file) serve(rc *fasthttp.RequestCtx) {
	h := &rc.Response.Header
	body, tag := f.body, `"`+f.tag+`"`
	if f.compressible() {
		h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
		if rc.Request.Header.HasAcceptEncoding("gzip") {
			body, tag = f.zipped(), `"`+f.tag+`-gz"`
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
	rc.Response.SetBodyRaw(body)
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
