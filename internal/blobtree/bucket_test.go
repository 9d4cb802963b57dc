package blobtree_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/blobtree/blobtest"
)

// buckets opens each kind of storage. That of S3 is a server of its protocol in
// this process.
func buckets(t *testing.T) map[string]func(*testing.T) blobtree.Bucket {
	open := func(t *testing.T, url string) blobtree.Bucket {
		b, err := blobtree.OpenBucket(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	return map[string]func(*testing.T) blobtree.Bucket{
		"memory": func(*testing.T) blobtree.Bucket { return blobtest.New() },
		"file":   func(t *testing.T) blobtree.Bucket { return open(t, "file://"+filepath.ToSlash(t.TempDir())) },
		"s3":     func(t *testing.T) blobtree.Bucket { return open(t, serveS3(t)+"&use_path_style=true") },
	}
}

// serveS3 returns the URL of a prefix in an empty bucket.
func serveS3(t *testing.T) string {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("muster"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(srv.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return "s3://muster/some/prefix?region=us-east-1&endpoint=" + srv.URL
}

// TestBucket: what the package relies on, of each kind of storage.
func TestBucket(t *testing.T) {
	for name, open := range buckets(t) {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			b := open(t)
			big := bytes.Repeat([]byte("0123456789abcdef"), 9<<16) // two parts
			for key, body := range map[string][]byte{"d/a": []byte("1"), "d/b": big, "d/e/c": []byte("2"), "f": nil} {
				if err := b.Put(ctx, key, bytes.NewReader([]byte("other"))); err != nil {
					t.Fatal(err)
				}
				if err := b.Put(ctx, key, bytes.NewReader(body)); err != nil {
					t.Fatal(err)
				}
				r, err := b.Get(ctx, key)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(r)
				if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, body) {
					t.Errorf("%s: %d bytes, %v", key, len(got), err)
				}
				o, err := b.Stat(ctx, key)
				if err != nil || o.Size != int64(len(body)) || o.Stored.IsZero() {
					t.Errorf("%s: %+v %v", key, o, err)
				}
			}
			list := func() string {
				var keys []string
				if err := b.List(ctx, "d", func(o blobtree.Object) error {
					if o.Stored.Before(time.Unix(1_600_000_000, 0)) {
						t.Errorf("%+v", o)
					}
					keys = append(keys, o.Key)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				return strings.Join(keys, " ")
			}
			if got := list(); got != "d/a d/b" {
				t.Error(got)
			}
			// A body that ends in an error stores nothing.
			torn := errors.New("torn")
			body := io.MultiReader(bytes.NewReader(big), errorReader{torn})
			if err := b.Put(ctx, "d/torn", body); !errors.Is(err, torn) {
				t.Error(err)
			}
			for range 2 {
				if err := b.Delete(ctx, "d/a"); err != nil {
					t.Error(err)
				}
			}
			if got := list(); got != "d/b" {
				t.Error(got)
			}
			if _, err := b.Get(ctx, "d/a"); !errors.Is(err, blobtree.ErrMissing) {
				t.Error(err)
			}
			if _, err := b.Stat(ctx, "d/a"); !errors.Is(err, blobtree.ErrMissing) {
				t.Error(err)
			}
			if err := b.List(ctx, "nothing", func(o blobtree.Object) error { return errors.New(o.Key) }); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestListWhileOthersStore: a listing of a directory, in which others make files
// and remove them meanwhile, does not fail because of one that went while it was
// looked at.
func TestListWhileOthersStore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := buckets(t)["file"](t)
	if err := b.Put(ctx, "d/stays", bytes.NewReader(nil)); err != nil {
		t.Fatal(err)
	}
	var storing sync.WaitGroup
	for i := range 4 {
		storing.Go(func() {
			key := fmt.Sprintf("d/%d", i)
			for ctx.Err() == nil {
				if err := errors.Join(b.Put(ctx, key, bytes.NewReader(nil)), b.Delete(ctx, key)); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end) && !t.Failed(); {
		found := false
		err := b.List(ctx, "d", func(o blobtree.Object) error {
			found = found || o.Key == "d/stays"
			return nil
		})
		if err != nil || !found {
			t.Errorf("found what stays: %v, %v", found, err)
		}
	}
	cancel()
	storing.Wait()
}

type errorReader struct{ error }

func (e errorReader) Read([]byte) (int, error) { return 0, e.error }

// TestS3ThatRefuses: an error of S3 is an error, not a missing object.
func TestS3ThatRefuses(t *testing.T) {
	url := strings.Replace(serveS3(t), "s3://muster/", "s3://other/", 1)
	b, err := blobtree.OpenBucket(context.Background(), url+"&use_path_style=true")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.List(context.Background(), "d", func(blobtree.Object) error { return nil }); err == nil {
		t.Error("a bucket that does not exist was listed")
	}
	if err := b.Put(context.Background(), "k", strings.NewReader("x")); err == nil {
		t.Error("a bucket that does not exist took an object")
	}
}

// TestS3IsSilent: the log is the only thing that writes to standard error, also where the
// storage sends no checksums.
func TestS3IsSilent(t *testing.T) {
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	stderr := os.Stderr
	os.Stderr = said
	defer func() { os.Stderr = stderr }()
	serveS3(t) // sets the credentials
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
		_, _ = io.WriteString(w, "text")
	}))
	defer srv.Close()
	b, err := blobtree.OpenBucket(context.Background(), "s3://muster/prefix?region=us-east-1&use_path_style=true&endpoint="+srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, err := b.Get(context.Background(), "d/a")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || string(text) != "text" {
		t.Errorf("%q %v", text, err)
	}
	if text, err := os.ReadFile(said.Name()); err != nil || len(text) > 0 {
		t.Errorf("%s %v", text, err)
	}
}

// TestBucketURLs: what cannot be meant is refused with what to write instead.
func TestBucketURLs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"/mnt/muster":                   "file:///DIRECTORY",
		"gs://bucket":                   "s3://BUCKET/PREFIX",
		"file://mnt/muster":             "three slashes",
		"file:///mnt/x?create_dir=true": "question mark",
		"file://" + dir + "/missing":    "mount it",
		"file://" + dir + "/file":       "not a directory",
		"s3:///prefix":                  "bucketName is required",
		"s3://b?nonsense=1":             "nonsense",
		"%zz":                           "no URL",
	} {
		if b, err := blobtree.OpenBucket(context.Background(), url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", url, b, err)
		}
	}
}
