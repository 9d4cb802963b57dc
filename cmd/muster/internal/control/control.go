package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// socketFile is the socket's name in a data directory.
const socketFile = "control.sock"

const (
	// maxPath is how long the path of a Unix socket may be on all systems.
	maxPath = 100
	// maxRequest bounds a request's line, requestTime how long it may take to come.
	maxRequest  = 64 << 10
	requestTime = 10 * time.Second
	// maxConnections bounds the connections at once.
	maxConnections = 16
)

// Request is what a command asks for.
type Request struct {
	// Backup is the URL of the place that a backup is made to.
	Backup string `json:"backup,omitempty"`
	// History is the path of a new file that history is copied to.
	History string `json:"history,omitempty"`
}

// Answer is a line of the answer.
type Answer struct {
	// Note is for the user to read while it continues.
	Note string `json:"note,omitempty"`
	// Done is what was done; Error why it was not. One of them ends the answer.
	Done  string `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
}

// Server answers commands.
type Server struct {
	ln      net.Listener
	remove  []string // at the end
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// Handler does what a request asks for, and calls note with the progress. ctx ends
// when the client goes away.
type Handler func(ctx context.Context, r Request, note func(string)) (done string, err error)

// Listen serves a data directory, which the caller has locked.
func Listen(dir string, handle Handler, log *slog.Logger) (*Server, error) {
	s := &Server{}
	path, err := filepath.Abs(filepath.Join(dir, socketFile))
	if err != nil {
		return nil, err
	}
	if err := removeOld(path); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s.remove = []string{path}
	if len(path) > maxPath {
		// The name is random and its directory private: no other user can have made
		// it.
		private, err := os.MkdirTemp("", "muster-")
		if err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
		socket := filepath.Join(private, socketFile)
		s.remove = append(s.remove, socket, private)
		if err := os.WriteFile(path, []byte(socket+"\n"), 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("control socket: %w", err), s.clear())
		}
		path = socket
	}
	if s.ln, err = net.Listen("unix", path); err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		if s.ln != nil {
			_ = s.ln.Close()
		}
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), s.clear())
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.running.Go(func() { s.accept(handle, log) })
	return s, nil
}

// removeOld removes what a server that was killed left, a socket of its own among the
// temporary files included.
func removeOld(path string) error {
	if b, err := os.ReadFile(path); err == nil {
		if socket := strings.TrimSpace(string(b)); filepath.Base(socket) == socketFile && strings.HasPrefix(filepath.Base(filepath.Dir(socket)), "muster-") {
			_ = os.Remove(socket)
			_ = os.Remove(filepath.Dir(socket)) // it may have gone with all temporary files
		}
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Server) clear() (err error) {
	for _, path := range s.remove {
		if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Close ends what is being done and removes the socket.
func (s *Server) Close() error {
	s.end()
	err := s.ln.Close()
	s.running.Wait()
	return errors.Join(err, s.clear())
}

func (s *Server) accept(handle Handler, log *slog.Logger) {
	free := make(chan struct{}, maxConnections)
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			if s.ctx.Err() == nil {
				log.Error("the control socket takes no commands any more", "error", err)
			}
			return
		}
		select {
		case free <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		s.running.Go(func() {
			defer func() { <-free }()
			serve(s.ctx, conn, handle)
		})
	}
}

func serve(ctx context.Context, conn net.Conn, handle Handler) {
	server := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	defer conn.Close()
	var writing sync.Mutex
	put := func(a Answer) {
		writing.Lock()
		defer writing.Unlock()
		_ = conn.SetWriteDeadline(time.Now().Add(requestTime))
		if json.NewEncoder(conn).Encode(a) != nil {
			cancel() // the client has gone
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(requestTime))
	in := bufio.NewReader(io.LimitReader(conn, maxRequest))
	line, err := in.ReadBytes('\n')
	var r Request
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		put(Answer{Error: fmt.Sprintf("the request cannot be read: %v", err)})
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	if ctx.Err() != nil {
		return
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_, _ = in.ReadByte() // returns when the client goes away
		cancel()
	}()
	done, err := handle(ctx, r, func(note string) { put(Answer{Note: note}) })
	switch {
	case err != nil && server.Err() != nil:
		put(Answer{Error: errStopped})
	case err != nil:
		put(Answer{Error: err.Error()})
	default:
		put(Answer{Done: done})
	}
	_ = conn.Close()
	<-watched
}

// errStopped is the answer to what a stop of the server cut off.
const errStopped = "the server was stopped before it was done. Nothing was made of it; run the command again"

// ErrNoServer means that no server answers at the directory's socket.
var ErrNoServer = errors.New("no server answers at the directory's control socket")

// Call asks the server of a data directory, and hands its notes to note.
func Call(ctx context.Context, dir string, r Request, note func(string)) (done string, err error) {
	conn, err := dial(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	for d := json.NewDecoder(conn); ; {
		var a Answer
		if err := d.Decode(&a); err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", fmt.Errorf("the server ended before it was done: %w", err)
		}
		switch {
		case a.Error != "":
			return "", errors.New(a.Error)
		case a.Done != "":
			return a.Done, nil
		case note != nil:
			note(a.Note)
		}
	}
}

func dial(ctx context.Context, dir string) (net.Conn, error) {
	path, err := filepath.Abs(filepath.Join(dir, socketFile))
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if info.Mode().IsRegular() {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		path = strings.TrimSpace(string(b))
	}
	if len(path) <= maxPath {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return nil, fmt.Errorf("%s is longer than the path of a socket may be; name the directory by a shorter path", path)
}
