package refusal

import "bytes"

// surfaces are the values of the label, in the order of their counters.
var surfaces = [...]string{"a", "b", "c", "console", "links", "inbound", "other"}

const (
	surfaceA = iota
	surfaceB
	surfaceC
	surfaceConsole
	surfaceLinks
	surfaceInbound
	surfaceOther
)

// surfaceOf returns the surface of a path, negative for what is asked by machines
// that run the service: probes, Prometheus and other nodes.
func surfaceOf(path []byte) int {
	below := func(prefix string) bool {
		rest, ok := bytes.CutPrefix(path, []byte(prefix))
		return ok && (len(rest) == 0 || rest[0] == '/')
	}
	switch {
	case below("/api/v1/events") && !below("/api/v1/events/live"): // which is by API key
		return surfaceB
	case below("/api/v1"):
		return surfaceA
	case below("/v1"):
		return surfaceC
	case below("/console/api"):
		return surfaceConsole
	case below("/t"):
		return surfaceLinks
	case below("/inbound"):
		return surfaceInbound
	case below("/cluster"), below("/healthz"), below("/readyz"), below("/metrics"):
		return -1
	}
	return surfaceOther
}
