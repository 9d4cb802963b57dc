package services

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a server that can be started again after it ended. Its methods
// may be called from several goroutines.
type process struct {
	// name is how errors call it.
	name string
	// argv is the command; one argument holds the server's directory.
	argv []string
	dir  string
	// logPath takes standard output and error of all its processes.
	logPath string
	// detach has it outlive its starter; otherwise it ends with it.
	detach bool

	mu struct {
		sync.Mutex
		cmd  *exec.Cmd     // nil before the first start
		done chan struct{} // closed when cmd has ended
		from int64         // where this life begins in the log
	}
}

var errRunning = errors.New("is running already")

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.cmd != nil && !closed(p.mu.done) {
		return fmt.Errorf("%s %w", p.name, errRunning)
	}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	if info, err := log.Stat(); err == nil {
		p.mu.from = info.Size()
	}
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = attributes(p.detach)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s does not start: %w", p.name, err)
	}
	done := make(chan struct{})
	p.mu.cmd, p.mu.done = cmd, done
	go func() {
		_ = cmd.Wait() // how a killed server ended says nothing
		close(done)
	}()
	return nil
}

// signal sends sig. A process that has ended is no error.
func (p *process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.cmd == nil || closed(p.mu.done) {
		return nil
	}
	if err := p.mu.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: signal %s: %w", p.name, sig, err)
	}
	return nil
}

// freeze stops its time: connections stay, nothing is answered. It returns once
// every thread of the process has stopped: the signal takes a moment, in which a
// server may still answer.
func (p *process) freeze() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	p.mu.Lock()
	cmd := p.mu.cmd
	p.mu.Unlock()
	if cmd == nil {
		return nil
	}
	for end := time.Now().Add(freezeTime); ; time.Sleep(time.Millisecond) {
		stopped, err := allStopped(cmd.Process.Pid)
		if err != nil || stopped {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: process %d does not stop", p.name, cmd.Process.Pid)
		}
	}
}

const freezeTime = 30 * time.Second

// allStopped reports whether the kernel has stopped all threads of a process.
func allStopped(pid int) (bool, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false, err
	}
	for _, path := range tasks {
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		// The state follows the name, which is in brackets and may hold any.
		if i := strings.LastIndexByte(string(b), ')'); i < 0 || i+2 >= len(b) || b[i+2] != 'T' && b[i+2] != 'Z' {
			return false, nil
		}
	}
	return true, nil
}

// thaw ends freeze.
func (p *process) thaw() error { return p.signal(syscall.SIGCONT) }

// kill ends it with SIGKILL and returns when it is gone.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended()
	return nil
}

// stop asks it to end with SIGTERM and kills it after grace.
func (p *process) stop(grace time.Duration) error {
	if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.ended():
		return nil
	case <-timer.C:
		return p.kill()
	}
}

// ended is closed once the process has ended, or when it was never started.
func (p *process) ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.cmd == nil {
		never := make(chan struct{})
		close(never)
		return never
	}
	return p.mu.done
}

// pid is the process's id, 0 before the first start.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.cmd == nil {
		return 0
	}
	return p.mu.cmd.Process.Pid
}

// portTaken reports whether this life could not listen, as far as it said.
func (p *process) portTaken() bool {
	p.mu.Lock()
	from := p.mu.from
	p.mu.Unlock()
	b, err := os.ReadFile(p.logPath)
	if err != nil || int64(len(b)) < from {
		return false
	}
	return strings.Contains(strings.ToLower(string(b[from:])), "address already in use")
}

// failure is an error with the end of the log, which says more.
func (p *process) failure(err error) error {
	return fmt.Errorf("%s: %w\n%s: %s", p.name, err, p.logPath, tail(p.logPath, 3000))
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// tail returns the last n bytes of a file, or why it cannot.
func tail(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > n {
		_, _ = f.Seek(-n, io.SeekEnd) // else it is read from its start
	}
	b, err := io.ReadAll(io.LimitReader(f, n))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// mark is a process that another run of the tool started.
type mark struct {
	PID int `json:"pid"`
	// Arg is part of its command line that no other process has.
	Arg string `json:"arg"`
}

// alive reports whether the process runs and is the one that was started: an
// id is given to another process some time after its own has ended.
func (m mark) alive() bool {
	return m.PID > 0 && strings.Contains(commandLine(m.PID), m.Arg)
}

// stop ends the process if it is still the one that was started.
func (m mark) stop(grace time.Duration) error {
	for _, step := range []struct {
		signals []syscall.Signal
		wait    time.Duration
	}{
		{[]syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}, grace},
		{[]syscall.Signal{syscall.SIGKILL}, 10 * time.Second},
	} {
		if !m.alive() {
			return nil
		}
		for _, sig := range step.signals {
			if err := syscall.Kill(m.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("process %d: %w", m.PID, err)
			}
		}
		for end := time.Now().Add(step.wait); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if !m.alive() {
				return nil
			}
		}
	}
	if m.alive() {
		return fmt.Errorf("process %d does not end", m.PID)
	}
	return nil
}

// tryLock takes the lock of that name for the rest of the process's life, unless
// some process has it, this one among them.
func tryLock(path string) (bool, error) {
	// Not an os.File: one that is not held any more is closed, and unlocked.
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return false, &os.PathError{Op: "open", Path: path, Err: err}
	}
	err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return true, nil
	}
	_ = syscall.Close(fd)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return false, fmt.Errorf("lock %s: %w", path, err)
}

// lockFile waits for the lock of that name. The kernel frees it when the
// process ends, however it ends.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
