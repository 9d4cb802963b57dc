package main

import (
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/internal/clientaddr"
)

// networkFlags say who is believed to be whom on the network.
type networkFlags struct{ proxies *string }

func (n *networkFlags) add(f *cli.Flags) {
	n.proxies = f.String("trusted-proxies", "", "`NETWORKS` of the load balancers before this server, such as 10.0.0.0/8,192.0.2.7, whose X-Forwarded-For names the client; without them the header is ignored")
}

// networkConfig is what the flags say.
type networkConfig struct{ proxies clientaddr.Proxies }

func (n *networkFlags) read() (c networkConfig, err error) {
	if c.proxies, err = clientaddr.Parse(*n.proxies); err != nil {
		return c, wrongUsage("--trusted-proxies: %w", err)
	}
	return c, nil
}

// before stands before all handlers: they see the client's address.
func (c *networkConfig) before(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return c.proxies.Handler(next)
}
