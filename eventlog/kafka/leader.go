package kafka

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	kgo "github.com/segmentio/kafka-go"
)

const (
	// metadataTTL is how old kafka-go lets its picture of the cluster grow; it
	// takes a random time up to that. It also bounds how long it waits for a
	// broker that does not answer before it asks another.
	metadataTTL = 2 * time.Second
	// watchEvery is how often that picture is looked at, which costs nothing.
	watchEvery = 200 * time.Millisecond
)

// leader is the broker that leads a partition, as far as known.
type leader struct {
	mu struct {
		sync.Mutex
		broker kgo.Broker
		// ctx ends when another broker leads.
		ctx    context.Context
		cancel context.CancelFunc
	}
	// parent ends with the log.
	parent context.Context
}

// lead is a broker and how long it leads.
type lead struct {
	addr string
	ctx  context.Context
	// err is set when there is no leader.
	err error
}

func (l *leader) init(parent context.Context) {
	l.parent = parent
	l.mu.ctx, l.mu.cancel = context.WithCancel(parent)
}

func (l *leader) present() lead {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.broker.Host == "" {
		return lead{ctx: l.mu.ctx, err: errNoLeader}
	}
	return lead{addr: hostPort(l.mu.broker), ctx: l.mu.ctx}
}

// set notes who leads, and ends what waits for one who does not any more.
func (l *leader) set(b kgo.Broker) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b == l.mu.broker {
		return false
	}
	l.mu.broker = b
	l.mu.cancel()
	l.mu.ctx, l.mu.cancel = context.WithCancel(l.parent)
	return true
}

func hostPort(b kgo.Broker) string { return net.JoinHostPort(b.Host, strconv.Itoa(b.Port)) }
