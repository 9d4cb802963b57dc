package blobtree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"
)

// ErrMissing means that there is no object of that key.
var ErrMissing = errors.New("there is no such object")

// Object is an object in storage.
type Object struct {
	Key    string
	Size   int64 // bytes
	Stored time.Time
}

// Bucket is object storage. Its methods may be called at once.
type Bucket interface {
	// Put stores an object, replacing one of that key. It is there whole and
	// durable, or not at all.
	Put(ctx context.Context, key string, body io.Reader) error
	// Get reads an object; a missing one is [ErrMissing].
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// Stat describes an object; a missing one is [ErrMissing].
	Stat(ctx context.Context, key string) (Object, error)
	// List calls fn for the objects whose key is dir, a slash, and no further
	// slash, in order of keys.
	List(ctx context.Context, dir string, fn func(Object) error) error
	// Delete removes an object; a missing one is no error.
	Delete(ctx context.Context, key string) error
	Close() error
}

// operationTime bounds each operation of storage, so that a connection that hangs
// ends: a piece of 64 MiB then needs 0.25 MB/s.
const operationTime = 5 * time.Minute

// partBytes is how much of an object is in memory while it is sent to S3.
const partBytes = 8 << 20

// checksumParameter is when the AWS SDK compares what it reads with checksums of the storage.
const checksumParameter = "response_checksum_validation"

// OpenBucket opens storage by its URL: file:///DIRECTORY, which must exist, or
// s3://BUCKET/PREFIX?region=…, with what package s3blob of gocloud.dev takes
// behind the question mark. Credentials of S3 come from where the AWS SDK looks
// for them. S3 is not asked for anything yet.
func OpenBucket(ctx context.Context, rawURL string) (Bucket, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%q is no URL: %w", rawURL, err)
	}
	switch u.Scheme {
	case fileblob.Scheme:
		return openDirectory(u)
	case s3blob.Scheme:
		prefix := strings.Trim(u.Path, "/")
		u.Path = ""
		// What is read is compared with checksums of our own. Of storage that sends none, the
		// SDK would say so on standard error for each object, beside the log.
		if q := u.Query(); !q.Has(checksumParameter) {
			q.Set(checksumParameter, "when_required")
			u.RawQuery = q.Encode()
		}
		b, err := new(s3blob.URLOpener).OpenBucketURL(ctx, u)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rawURL, err)
		}
		if prefix != "" {
			b = blob.PrefixedBucket(b, prefix+"/")
		}
		return &cloudBucket{blob: b}, nil
	}
	return nil, fmt.Errorf("%q is no place for files: use file:///DIRECTORY or s3://BUCKET/PREFIX?region=REGION", rawURL)
}

func openDirectory(u *url.URL) (Bucket, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, fmt.Errorf("%s names the machine %q: a directory is written with three slashes, as in file:///mnt/muster", u, u.Host)
	}
	if u.RawQuery != "" {
		return nil, fmt.Errorf("%s: the URL of a directory has no parameters; drop the question mark and what follows", u)
	}
	dir := filepath.FromSlash(u.Path)
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%s: name the directory from the root on, as in file:///mnt/muster", u)
	}
	// A directory that is not there may be one that is not mounted, so it is
	// not made. Profiles are personal data: what is made in it is private.
	b, err := fileblob.OpenBucket(dir, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite, DirFileMode: 0o700})
	if err != nil {
		return nil, fmt.Errorf("%s: %w. Make the directory, or mount it", u, err)
	}
	return &cloudBucket{blob: b, dir: dir}, nil
}

// cloudBucket is a bucket of gocloud.dev.
type cloudBucket struct {
	blob *blob.Bucket
	dir  string // of files; empty for S3
}

func (b *cloudBucket) Put(ctx context.Context, key string, body io.Reader) (err error) {
	ctx, cancel := context.WithTimeout(ctx, operationTime)
	defer cancel()
	var file *os.File
	w, err := b.blob.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: "application/octet-stream", BufferSize: partBytes, MaxConcurrency: 1,
		BeforeWrite: func(as func(any) bool) error {
			as(&file)
			return nil
		},
	})
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	_, err = io.Copy(w, body)
	if err == nil && file != nil {
		err = file.Sync() // package fileblob does not
	}
	if err != nil {
		cancel() // or Close would store the part
	}
	if closed := w.Close(); err == nil { // else it says that it was canceled
		err = closed
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return b.syncDir(key)
}

// syncDir makes the entry of a file durable, and those of the directories above.
func (b *cloudBucket) syncDir(key string) error {
	if b.dir == "" {
		return nil
	}
	for dir := filepath.Dir(filepath.Join(b.dir, filepath.FromSlash(key))); ; dir = filepath.Dir(dir) {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return fmt.Errorf("store %s: %w", key, err)
		}
		if dir == b.dir || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (b *cloudBucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTime)
	r, err := b.blob.NewReader(ctx, key, nil)
	if err != nil {
		cancel()
		return nil, known(fmt.Errorf("read %s: %w", key, err))
	}
	return &timedReader{r, cancel}, nil
}

// timedReader ends its time when it is closed.
type timedReader struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (r *timedReader) Close() error {
	defer r.cancel()
	return r.ReadCloser.Close()
}

func (b *cloudBucket) Stat(ctx context.Context, key string) (Object, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTime)
	defer cancel()
	a, err := b.blob.Attributes(ctx, key)
	if err != nil {
		return Object{}, known(fmt.Errorf("look at %s: %w", key, err))
	}
	return Object{Key: key, Size: a.Size, Stored: a.ModTime}, nil
}

// listAgain is how often a page of a listing is asked for again.
const listAgain = 100

func (b *cloudBucket) List(ctx context.Context, dir string, fn func(Object) error) error {
	ctx, cancel := context.WithTimeout(ctx, operationTime)
	defer cancel()
	it := b.blob.List(&blob.ListOptions{Prefix: dir + "/", Delimiter: "/"})
	for again := 0; ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if b.dir != "" && gcerrors.Code(err) == gcerrors.NotFound && again < listAgain {
			again++ // a file was there by its name and gone when it was looked at
			continue
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", dir, err)
		}
		if o.IsDir {
			continue
		}
		if err := fn(Object{Key: o.Key, Size: o.Size, Stored: o.ModTime}); err != nil {
			return err
		}
	}
}

func (b *cloudBucket) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, operationTime)
	defer cancel()
	if err := b.blob.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

func (b *cloudBucket) Close() error { return b.blob.Close() }

// known marks what gocloud.dev tells of a missing object.
func known(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return err
}
