package services

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

//go:embed kafka/pom.xml
var kafkaPOM []byte

// kafkaSums are the jars that pom.xml resolves to, in sha256sum's format.
//
//go:embed kafka/SHA256SUMS
var kafkaSums []byte

//go:embed launcher/launcher.c
var launcherSource []byte

const (
	// mavenCopy is pinned so that a newer plugin changes nothing.
	mavenCopy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

	chdbPackage = "@chdb/lib-linux-x64-gnu@26.7.3-stable.1"
	// chdbSHA512 is of the package's archive, as npm writes an integrity.
	chdbSHA512 = "XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw=="
	chdbDir    = "chdb-26.7.3-stable.1"
	chdbLib    = "libchdb.so"
)

// ErrMissing means that a server's program is not on this machine yet, or not
// to be had for it.
var ErrMissing = errors.New("test services are not installed")

// cacheDir is where programs and the data of running servers are kept.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory (set XDG_CACHE_HOME): %w", err)
	}
	dir = filepath.Join(dir, "muster-services")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cache directory: %w", err)
	}
	return dir, nil
}

// installer finds programs in the cache and, when fetch is set, gets those
// that are missing.
type installer struct {
	cache string
	fetch bool
	out   io.Writer
}

func newInstaller(fetch bool, out io.Writer) (*installer, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	return &installer{cache: cache, fetch: fetch, out: out}, nil
}

// ensure returns the directory of that name below the cache. When it is not
// there, make fills a fresh one, which takes the name only when it is whole:
// a directory that is there needs no second look.
func (in *installer) ensure(ctx context.Context, name string, make func(ctx context.Context, dir string) error) (string, error) {
	dir := filepath.Join(in.cache, name)
	if isDir(dir) {
		return dir, nil
	}
	if !in.fetch {
		return "", fmt.Errorf("%w: no %s; run `make services-up`", ErrMissing, dir)
	}
	unlock, err := lockFile(filepath.Join(in.cache, "install.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(dir) {
		return dir, nil
	}
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return "", err
	}
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return "", err
	}
	if err := make(ctx, fresh); err != nil {
		return "", errors.Join(err, os.RemoveAll(fresh))
	}
	if err := os.Rename(fresh, dir); err != nil {
		return "", err
	}
	return dir, nil
}

// The cache's directories are named after what decides on their contents.

func kafkaDir() string {
	id := sha256.Sum256(append(slices.Clone(kafkaPOM), kafkaSums...))
	return "kafka-" + hex.EncodeToString(id[:6])
}

func launcherDir() string {
	id := sha256.Sum256(launcherSource)
	return "launcher-" + hex.EncodeToString(id[:6])
}

// kafkaJars returns the directory with Kafka's jars.
func (in *installer) kafkaJars(ctx context.Context) (string, error) {
	return in.ensure(ctx, kafkaDir(), func(ctx context.Context, dir string) error {
		fmt.Fprintln(in.out, "getting Apache Kafka through Maven")
		if err := copyJars(ctx, dir); err != nil {
			return err
		}
		return checkSums(dir, kafkaSums)
	})
}

// copyJars has Maven put Kafka and all it needs into dir.
func copyJars(ctx context.Context, dir string) error {
	work, err := os.MkdirTemp("", "muster-kafka-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	pom := filepath.Join(work, "pom.xml")
	if err := os.WriteFile(pom, kafkaPOM, 0o644); err != nil {
		return err
	}
	return run(ctx, work, "mvn", "-q", "-B", "-f", pom, mavenCopy,
		"-DincludeScope=runtime", "-DoutputDirectory="+dir)
}

// checkSums compares the files of dir with a list in sha256sum's format. A
// file that is missing or that the list does not have is an error, too.
func checkSums(dir string, list []byte) error {
	want := map[string]string{}
	for sc := bufio.NewScanner(bytes.NewReader(list)); sc.Scan(); {
		sum, name, ok := strings.Cut(sc.Text(), "  ")
		if !ok {
			return fmt.Errorf("SHA256SUMS: line %q is not `sum  name`", sc.Text())
		}
		want[name] = sum
	}
	have, err := sums(dir)
	if err != nil {
		return err
	}
	for name, sum := range have {
		switch want[name] {
		case sum:
			delete(want, name)
		case "":
			return fmt.Errorf("%s is not in SHA256SUMS: the registry serves other dependencies than those pinned", name)
		default:
			return fmt.Errorf("%s has SHA-256 %s, SHA256SUMS says %s", name, sum, want[name])
		}
	}
	for name := range want {
		return fmt.Errorf("%s is in SHA256SUMS but was not fetched", name)
	}
	return nil
}

// sums returns the SHA-256 of each file of dir by its name, in hex.
func sums(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]string, len(entries))
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		byName[e.Name()] = hex.EncodeToString(sum[:])
	}
	return byName, nil
}

// PrintJars resolves kafka/pom.xml again and writes what belongs into
// kafka/SHA256SUMS. It is run by hand after a change of pom.xml.
func PrintJars(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "muster-jars-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyJars(ctx, dir); err != nil {
		return err
	}
	byName, err := sums(dir)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if _, err := fmt.Fprintf(w, "%s  %s\n", byName[name], name); err != nil {
			return err
		}
	}
	return nil
}

// chdb returns the paths of the launcher and of ClickHouse's library.
func (in *installer) chdb(ctx context.Context) (launcher, lib string, err error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", "", fmt.Errorf("%w: ClickHouse is packaged for Linux on x86-64, this is %s on %s; set MUSTER_TEST_CLICKHOUSE to a server's DSN",
			ErrMissing, runtime.GOOS, runtime.GOARCH)
	}
	libDir, err := in.ensure(ctx, chdbDir, func(ctx context.Context, dir string) error {
		fmt.Fprintln(in.out, "getting ClickHouse through npm (180 MB)")
		return fetchChdb(ctx, dir)
	})
	if err != nil {
		return "", "", err
	}
	binDir, err := in.ensure(ctx, launcherDir(), func(ctx context.Context, dir string) error {
		source := filepath.Join(dir, "launcher.c")
		if err := os.WriteFile(source, launcherSource, 0o644); err != nil {
			return err
		}
		return run(ctx, dir, "cc", "-O1", "-Wall", "-o", filepath.Join(dir, "launcher"), source, "-ldl")
	})
	if err != nil {
		return "", "", err
	}
	return filepath.Join(binDir, "launcher"), filepath.Join(libDir, chdbLib), nil
}

// fetchChdb has npm download the package, compares it and takes the library out.
func fetchChdb(ctx context.Context, dir string) error {
	work, err := os.MkdirTemp(filepath.Dir(dir), "npm-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	// A cache that goes with the archive: npm would keep a second copy of it.
	if err := run(ctx, work, "npm", "pack", "--silent", "--cache", filepath.Join(work, "cache"), "--pack-destination", work, chdbPackage); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("npm pack %s left %d archives, one expected (%v)", chdbPackage, len(archives), err)
	}
	f, err := os.Open(archives[0])
	if err != nil {
		return err
	}
	defer f.Close()
	digest := sha512.New()
	if _, err := io.Copy(digest, f); err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(digest.Sum(nil)); got != chdbSHA512 {
		return fmt.Errorf("%s has SHA-512 %s, want %s", chdbPackage, got, chdbSHA512)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return extract(f, "package/"+chdbLib, filepath.Join(dir, chdbLib))
}

// extract copies one file out of a compressed archive.
func extract(archive io.Reader, name, to string) error {
	zr, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("archive has no %s", name)
		}
		if err != nil {
			return err
		}
		if h.Name != name {
			continue
		}
		out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, tr)
		return errors.Join(err, out.Close())
	}
}

// run runs a tool to its end; its output is in the error when it fails.
func run(ctx context.Context, dir, tool string, args ...string) error {
	path, err := look(tool)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", tool, err, lastBytes(out, 4000))
	}
	return nil
}

func lastBytes(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// remove deletes a file that may be gone already.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
