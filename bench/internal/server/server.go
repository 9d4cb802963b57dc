package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/internal/services"
)

// Installation is a data directory and the binary that serves it. Its address
// stays the same over restarts, as its credentials name it.
type Installation struct {
	// Dir holds everything: data, credentials and log of the server.
	Dir string
	// Binary is the path of muster.
	Binary string
	// Args are further arguments of `muster serve`.
	Args []string

	address string
}

// NewInstallation prepares a directory, which must be empty or absent.
func NewInstallation(dir, binary string, args []string) (*Installation, error) {
	if binary == "" {
		return nil, errors.New("a server needs a binary")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("preparing the server's directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("preparing the server's directory: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("directory %s is not empty; name a new one", dir)
	}
	ports, err := services.FreePorts(1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	return &Installation{Dir: dir, Binary: binary, Args: args, address: address}, nil
}

// KeptInstallation is an installation that was used before, as it was left.
func KeptInstallation(dir, binary string, args []string) (*Installation, error) {
	i := &Installation{Dir: dir, Binary: binary, Args: args}
	c, err := ReadCredentials(i.CredentialsFile())
	if err != nil {
		return nil, err
	}
	u, err := LoopbackURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	i.address = u.Host
	return i, nil
}

// Address is where the server listens, HOST:PORT.
func (i *Installation) Address() string { return i.address }

// DataDir is the server's --data.
func (i *Installation) DataDir() string { return filepath.Join(i.Dir, "data") }

// HistoryFile is the DuckDB file of the embedded history.
func (i *Installation) HistoryFile() string { return filepath.Join(i.DataDir(), "history.duckdb") }

// LogFile is what the server printed, over all its starts.
func (i *Installation) LogFile() string { return filepath.Join(i.Dir, "server.log") }

// CredentialsFile is the path of the credentials that the first start prints.
func (i *Installation) CredentialsFile() string { return filepath.Join(i.Dir, "credentials.json") }

func (i *Installation) spec(timeout time.Duration) child.Spec {
	args := []string{"serve", "--data", i.DataDir(), "--listen", i.address, "--credentials", i.CredentialsFile()}
	return child.Spec{
		Path: i.Binary, Args: append(args, i.Args...), LogFile: i.LogFile(),
		Ready: func(line string) bool {
			return strings.Contains(line, "ready") && strings.Contains(line, i.address)
		},
		ReadyTimeout: timeout,
	}
}

// Server is a running server.
type Server struct {
	*child.Process
	Credentials Credentials
	// StartedIn is how long it took until it served.
	StartedIn time.Duration
}

// Start starts the server and waits until it serves.
func (i *Installation) Start(ctx context.Context, timeout time.Duration) (*Server, error) {
	began := time.Now()
	p, err := i.StartProcess(ctx, timeout)
	if err != nil {
		return nil, err
	}
	s := &Server{Process: p, StartedIn: time.Since(began)}
	if s.Credentials, err = ReadCredentials(i.CredentialsFile()); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return s, nil
}

// StartProcess is Start for a server that may have made no company, and so no
// credentials.
func (i *Installation) StartProcess(ctx context.Context, timeout time.Duration) (*child.Process, error) {
	p, _, err := child.Start(ctx, i.spec(timeout))
	return p, err
}

// Launch starts the server without waiting until it serves: for killing it
// while it starts.
func (i *Installation) Launch() (*child.Process, error) { return child.Launch(i.spec(0)) }

// DiskBytes is the size of the files below the data directory, see [DiskBytes].
func (i *Installation) DiskBytes() (map[string]int64, error) { return DiskBytes(i.DataDir()) }

// DiskBytes is the size of the files below a directory, by the first
// element of their path. A file of several names, as checkpoints have them,
// counts once.
func DiskBytes(dir string) (map[string]int64, error) {
	sizes := map[string]int64{}
	type inode struct{ device, number uint64 }
	seen := map[inode]bool{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
			if n := (inode{uint64(s.Dev), s.Ino}); seen[n] {
				return nil
			} else {
				seen[n] = true
			}
		}
		first, _, _ := strings.Cut(rel, string(filepath.Separator))
		sizes[first] += info.Size()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("measuring %s: %w", dir, err)
	}
	return sizes, nil
}
