package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// stateDir, at the project's root, holds data, logs and marks of the shared
	// servers.
	stateDir  = ".services"
	marksFile = "processes.json"
)

// Up starts the shared servers, installing what is missing, and writes their
// addresses to .services.json in root. Servers that run and answer are left
// alone; when one does not, both start again, without data. It reports what it does to
// out.
func Up(ctx context.Context, root string, out io.Writer) error {
	state, unlock, err := openState(root)
	if err != nil {
		return err
	}
	defer unlock()
	if a, err := readAddresses(root); err == nil && running(state) {
		if probeKafka(a.Kafka) == nil && probeClickHouse(a.ClickHouse) == nil {
			printAddresses(out, a)
			return nil
		}
	}
	if err := down(root, state); err != nil {
		return err
	}
	a, err := up(ctx, state, out)
	if err != nil {
		return errors.Join(err, stopAll(state))
	}
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, addressFile), append(b, '\n'), 0o644); err != nil {
		return errors.Join(err, stopAll(state))
	}
	printAddresses(out, a)
	return nil
}

func printAddresses(out io.Writer, a Addresses) {
	fmt.Fprintf(out, "Kafka %s, ClickHouse %s (in %s)\n", a.Kafka, a.ClickHouse, addressFile)
}

func up(ctx context.Context, state string, out io.Writer) (Addresses, error) {
	var a Addresses
	in, err := newInstaller(true, out)
	if err != nil {
		return a, err
	}
	if err := in.tools(ctx); err != nil {
		return a, err
	}
	if err := in.saveClasses(ctx); err != nil {
		if ctx.Err() != nil {
			return a, err
		}
		fmt.Fprintln(out, "Kafka will start more slowly:", err)
	}
	kafka, err := newKafka(ctx, in, state, 1, Doors{}, sharedLimits, true)
	if err != nil {
		return a, err
	}
	clickHouse, err := newClickHouse(ctx, in, state, sharedLimits, true)
	if err != nil {
		return a, err
	}
	var marks []mark
	servers := []*process{kafka.brokers[0].process, clickHouse.process}
	for _, p := range servers {
		if err := p.start(); err != nil {
			return a, err
		}
		// Written at once: whatever fails later, the process can be found.
		marks = append(marks, mark{PID: p.pid(), Arg: p.dir})
		if err := writeMarks(state, marks); err != nil {
			return a, errors.Join(err, p.kill())
		}
	}
	if err := kafka.waitServing(ctx, 0, 1); err != nil {
		return a, err
	}
	if err := clickHouse.waitServing(ctx); err != nil {
		return a, err
	}
	// One that had to start twice is another process now.
	for i, p := range servers {
		marks[i].PID = p.pid()
	}
	if err := writeMarks(state, marks); err != nil {
		return a, err
	}
	return Addresses{Kafka: kafka.Addrs()[0], ClickHouse: clickHouse.DSN()}, nil
}

// Down stops the shared servers that Up started in root and drops their data.
// It is no error when none runs.
func Down(root string) error {
	state, unlock, err := openState(root)
	if err != nil {
		return err
	}
	defer unlock()
	return down(root, state)
}

func down(root, state string) error {
	if err := stopAll(state); err != nil {
		return err
	}
	entries, err := os.ReadDir(state)
	if err != nil {
		return err
	}
	errs := []error{remove(filepath.Join(root, addressFile))}
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, os.RemoveAll(filepath.Join(state, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// openState returns the directory of the shared servers, locked.
func openState(root string) (state string, unlock func(), err error) {
	// The path is part of the servers' command lines, by which they are known.
	root, err = filepath.Abs(root)
	if err != nil {
		return "", nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", nil, err
	}
	state = filepath.Join(root, stateDir)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return "", nil, err
	}
	unlock, err = lockFile(filepath.Join(state, "lock"))
	return state, unlock, err
}

// running reports whether the processes of both servers are there.
func running(state string) bool {
	marks, err := readMarks(state)
	if err != nil || len(marks) != 2 {
		return false
	}
	for _, m := range marks {
		if !m.alive() {
			return false
		}
	}
	return true
}

// stopAll ends the servers. Marks that came with a copy of another checkout's
// directory name that one's servers, and are ignored.
func stopAll(state string) error {
	marks, err := readMarks(state)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range marks {
		if filepath.Dir(m.Arg) == state {
			errs = append(errs, m.stop(stopGrace))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return remove(filepath.Join(state, marksFile))
}

func writeMarks(state string, marks []mark) error {
	b, err := json.Marshal(marks)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(state, marksFile), b, 0o644)
}

func readMarks(state string) ([]mark, error) {
	path := filepath.Join(state, marksFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var marks []mark
	if err := json.Unmarshal(b, &marks); err != nil {
		return nil, fmt.Errorf("%s: %w; end the servers by hand and delete it", path, err)
	}
	for _, m := range marks {
		if strings.TrimSpace(m.Arg) == "" {
			return nil, fmt.Errorf("%s names process %d without an argument to know it by", path, m.PID)
		}
	}
	return marks, nil
}
