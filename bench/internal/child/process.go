package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Spec says what to start.
type Spec struct {
	// Path is the program, Args its arguments.
	Path string
	Args []string
	// Env is added to the bench's own environment.
	Env []string
	// LogFile receives everything the child writes; it is appended to.
	LogFile string
	// Ready recognises the line by which the child says that it serves.
	Ready func(line string) bool
	// ReadyTimeout bounds the wait for that line.
	ReadyTimeout time.Duration
}

// Process is a child that was started.
type Process struct {
	name   string
	cmd    *exec.Cmd
	output *output
	done   chan struct{}
	err    error // of Wait, set before done is closed
}

// ErrExited means the child ended by itself.
var ErrExited = errors.New("process ended by itself")

// Start starts the child and returns the line by which it said that it serves.
// A child that does not say so in time, or ends before, is stopped and its
// last output is part of the error.
func Start(ctx context.Context, spec Spec) (*Process, string, error) {
	p, err := Launch(spec)
	if err != nil {
		return nil, "", err
	}
	line, err := p.WaitReady(ctx, spec.ReadyTimeout)
	if err != nil {
		return nil, "", errors.Join(err, p.Kill())
	}
	return p, line, nil
}

// Launch starts the child and does not wait until it serves.
func Launch(spec Spec) (*Process, error) {
	out, err := newOutput(spec.LogFile, spec.Ready)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = dieWithParent()
	// A grandchild that keeps the pipe open must not hold up Wait.
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", spec.Path, err), out.Close())
	}
	p := &Process{name: spec.Path, cmd: cmd, output: out, done: make(chan struct{})}
	go func() {
		p.err = errors.Join(cmd.Wait(), out.Close())
		close(p.done)
	}()
	return p, nil
}

// WaitReady waits for the line by which the child says that it serves.
func (p *Process) WaitReady(ctx context.Context, timeout time.Duration) (string, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case line := <-p.output.ready:
		return line, nil
	case <-p.done:
		return "", fmt.Errorf("%w before it was ready: %s: %v; its last output:\n%s", ErrExited, p.name, p.err, p.output.Tail())
	case <-timer.C:
		return "", fmt.Errorf("%s did not say that it is ready within %v; its last output:\n%s", p.name, timeout, p.output.Tail())
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Tail is the child's last output.
func (p *Process) Tail() string { return p.output.Tail() }

// Kill ends the child at once with SIGKILL and waits for it.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s (process %d): %w", p.name, p.PID(), err)
	}
	<-p.done
	return nil
}

// Freeze stops the child's time with SIGSTOP: connections stay, nothing is
// answered. A child that has ended is no error.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to %s (process %d): %w", s, p.name, p.PID(), err)
	}
	return nil
}

// Stop asks the child to end with SIGTERM and waits for it. After the grace
// period it is killed and that is an error, as is an exit status other than 0.
func (p *Process) Stop(grace time.Duration) error {
	select {
	case <-p.done:
		return fmt.Errorf("%w: %s: %v; its last output:\n%s", ErrExited, p.name, p.err, p.output.Tail())
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("stopping %s: %w", p.name, err), p.Kill())
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not stop within %v of SIGTERM and was killed; its last output:\n%s",
			p.name, grace, p.output.Tail()), p.Kill())
	}
	if p.err != nil {
		return fmt.Errorf("%s stopped with %w; its last output:\n%s", p.name, p.err, p.output.Tail())
	}
	return nil
}
