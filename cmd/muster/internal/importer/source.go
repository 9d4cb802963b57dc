package importer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Source is a file to import.
type Source struct {
	// Name is the file's name as it was given.
	Name string
	// Hash is the SHA-256 of the content, Bytes its length, both after
	// decompression.
	Hash  [32]byte
	Bytes int64
	// CSV says how the columns of a CSV file are read.
	CSV CSVOptions

	path  string
	spool string // file to remove, "" for none
}

// Open reads a file once, to name it by its content. "-" is standard input;
// what cannot be read twice is copied to a file in tempDir first. Gzip and zstd
// are recognised by their first bytes.
func Open(ctx context.Context, name string, stdin io.Reader, tempDir string) (*Source, error) {
	s := &Source{Name: name, path: name}
	if name == "-" {
		if err := s.spoolFrom(ctx, stdin, tempDir); err != nil {
			return nil, err
		}
	} else if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory; name its files", name)
	} else if !info.Mode().IsRegular() {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = s.spoolFrom(ctx, f, tempDir)
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	r, err := s.open()
	if err == nil {
		h := sha256.New()
		s.Bytes, err = io.Copy(h, contextReader{ctx, r})
		h.Sum(s.Hash[:0])
		r.Close()
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func (s *Source) spoolFrom(ctx context.Context, r io.Reader, dir string) error {
	f, err := os.CreateTemp(dir, "muster-import-*")
	if err != nil {
		return err
	}
	s.path, s.spool = f.Name(), f.Name()
	_, err = io.Copy(f, contextReader{ctx, r})
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		s.Close()
		return fmt.Errorf("copy %s to %s: %w", s.Name, s.path, err)
	}
	return nil
}

// Close removes what Open made.
func (s *Source) Close() {
	if s.spool != "" {
		os.Remove(s.spool)
	}
}

// open returns the decompressed content.
func (s *Source) open() (io.ReadCloser, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 256<<10)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		f.Close()
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			f.Close()
			return nil, err
		}
		return &stream{z, func() error { return f.Close() }}, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			f.Close()
			return nil, err
		}
		return &stream{z, func() error { z.Close(); return f.Close() }}, nil
	}
	return &stream{in, f.Close}, nil
}

type stream struct {
	io.Reader
	close func() error
}

func (s *stream) Close() error { return s.close() }

// contextReader ends reading when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
