package zones

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

//go:embed zoneinfo.tar.gz
var packed []byte

// files are the zones' rules by name.
var files = sync.OnceValue(unpack)

func unpack() map[string][]byte {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(fmt.Sprintf("zones: the database of the binary: %v", err))
	}
	out := map[string][]byte{}
	for archive := tar.NewReader(gz); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err == nil {
			out[h.Name], err = io.ReadAll(archive)
		}
		if err != nil {
			panic(fmt.Sprintf("zones: the database of the binary: %v", err))
		}
	}
}

// loaded are zones by name, at most as many as the database has.
var loaded sync.Map

// Load finds a zone by its name in the database, such as Europe/Berlin. The same
// name gives the same pointer.
func Load(name string) (*time.Location, bool) {
	if name == "UTC" {
		return time.UTC, true
	}
	if z, ok := loaded.Load(name); ok {
		return z.(*time.Location), true
	}
	data, ok := files()[name]
	if !ok {
		return nil, false
	}
	z, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		panic(fmt.Sprintf("zones: %s in the database of the binary: %v", name, err))
	}
	first, _ := loaded.LoadOrStore(name, z)
	return first.(*time.Location), true
}

// Names are all names that Load knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(files())) }
