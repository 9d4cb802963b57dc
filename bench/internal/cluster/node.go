package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/server"
)

const (
	startTimeout = time.Minute
	// stopTimeout bounds a stop, with its last checkpoint.
	stopTimeout = time.Minute
	// askTimeout bounds a question for metrics.
	askTimeout = 10 * time.Second
)

// node is one muster serve.
type node struct {
	number  int
	binary  string
	dir     string
	address string
	args    []string
	process *child.Process // nil while it does not run
}

func (n *node) String() string { return fmt.Sprintf("node %d", n.number) }

func (n *node) origin() string { return "http://" + n.address }

func (n *node) credentials() string { return filepath.Join(n.dir, "credentials.json") }

func (n *node) start(ctx context.Context) error {
	p, _, err := child.Start(ctx, child.Spec{
		Path: n.binary, Args: n.args, LogFile: filepath.Join(n.dir, "server.log"), ReadyTimeout: startTimeout,
		Ready: func(line string) bool { return strings.Contains(line, "ready") && strings.Contains(line, n.address) },
	})
	if err != nil {
		return fmt.Errorf("%v: %w", n, err)
	}
	n.process = p
	return nil
}

// stop ends it as an operator would, kill with SIGKILL.
func (n *node) stop() error { return n.end((*child.Process).Stop) }

func (n *node) kill() error {
	return n.end(func(p *child.Process, _ time.Duration) error {
		select {
		case <-p.Done():
			return fmt.Errorf("%w; its last output:\n%s", child.ErrExited, p.Tail())
		default:
			return p.Kill()
		}
	})
}

func (n *node) end(how func(*child.Process, time.Duration) error) error {
	if n.process == nil {
		return nil
	}
	p := n.process
	n.process = nil
	if err := how(p, stopTimeout); err != nil {
		return fmt.Errorf("%v: %w", n, err)
	}
	return nil
}

func (n *node) readCredentials() (server.Credentials, error) {
	c, err := server.ReadCredentials(n.credentials())
	return c.At(n.origin()), err
}

// byPartition asks for a metric's values.
func (n *node) byPartition(ctx context.Context, name string) (map[int]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.origin()+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", n, err)
	}
	defer res.Body.Close()
	out := map[int]float64{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		rest, is := strings.CutPrefix(lines.Text(), name+`{partition="`)
		if !is {
			continue
		}
		label, value, _ := strings.Cut(rest, `"} `)
		p, err := strconv.Atoi(label)
		if err != nil {
			return nil, fmt.Errorf("%v: metric %q: %w", n, lines.Text(), err)
		}
		if out[p], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("%v: metric %q: %w", n, lines.Text(), err)
		}
	}
	return out, errors.Join(lines.Err())
}

// live are the nodes that run.
func live(nodes []*node) []*node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return n.process == nil })
}
