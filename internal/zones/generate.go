//go:build ignore

// Command generate makes zoneinfo.tar.gz of the time zone database of the Go
// distribution that runs it.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	check(err)
	in, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	check(err)
	defer in.Close()
	var out bytes.Buffer
	gz, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	check(err)
	archive := tar.NewWriter(gz)
	for _, f := range in.File {
		r, err := f.Open()
		check(err)
		data, err := io.ReadAll(r)
		check(err)
		check(archive.WriteHeader(&tar.Header{Name: f.Name, Mode: 0o644, Size: int64(len(data))}))
		_, err = archive.Write(data)
		check(err)
	}
	check(archive.Close())
	check(gz.Close())
	check(os.WriteFile("zoneinfo.tar.gz", out.Bytes(), 0o644))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
