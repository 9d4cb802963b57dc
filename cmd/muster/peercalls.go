package main

import (
	"net/http"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cluster/peer"
	"github.com/musterhq/muster/ingest/trackingapi"
	"github.com/musterhq/muster/resolver/node"
)

// peerCalls answers calls of other nodes, from when there are some.
type peerCalls struct{ server atomic.Pointer[peer.Server] }

// before stands before the handler of everything else.
func (p *peerCalls) before(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		if s := p.server.Load(); s != nil && peer.Is(rc) {
			s.Handle(rc)
			return
		}
		next(rc)
	}
}

// open lets commands of other nodes in; peers is nil where there are none.
func (p *peerCalls) open(peers *peer.Peers) {
	if peers != nil {
		p.server.Store(peer.NewServer(peers, func(rc *fasthttp.RequestCtx) { api.Refuse(rc, http.StatusNotFound, "there is nothing at this path") }))
	}
}

// serve lets everything else in that other nodes send.
func (p *peerCalls) serve(s *services) {
	if server := p.server.Load(); server != nil {
		server.Open(s.router, s.console.Answer)
	}
}

// routed is the router before a node's own handler: what is about an account of
// another node goes there.
func routed(peers *peer.Peers, node *node.Node, c *serveConfig, handler fasthttp.RequestHandler) *peer.Router {
	// Bodies are read before anybody is authenticated.
	memory := c.ingest.Memory.Part(2)
	return peer.NewRouter(peers, peer.RouterOptions{
		Partition: func(rc *fasthttp.RequestCtx) (int, bool) {
			if trackingapi.Is(rc.Path()) {
				account, ok := trackingapi.Locate(rc, memory, c.ingest.BodyBytes)
				return node.PartitionOf(account), ok
			}
			switch subject, account := api.Locate(rc); subject {
			case api.Account:
				return node.PartitionOf(account), true
			case api.Everybody:
				return directoryPartition, true
			}
			return 0, false
		},
		Handler: handler,
		Refuse: func(rc *fasthttp.RequestCtx, status int, text string) {
			refuse(rc, string(rc.Path()), status, text)
		},
	})
}
