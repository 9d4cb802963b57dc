package refusal

import (
	"bytes"
	"strings"
)

// surfaces are the values of the label, in the order of their counters.
var surfaces = [...]string{"a", "b", "c", "console", "links", "inbound", "tracking", "other"}

const (
	surfaceA = iota
	surfaceB
	surfaceC
	surfaceConsole
	surfaceLinks
	surfaceInbound
	surfaceTracking
	surfaceOther
)

// tracking are the paths of the tracking API, which have no prefix of their own: those of
// package trackingapi, whose tests compare them.
var tracking = paths("/v1/batch /v1/b /batch /b /v1/import /v1/track /v1/t /v1/identify /v1/i /v1/page /v1/p /v1/screen /v1/s /v1/group /v1/g /v1/alias /v1/a /v1/merge /v1/m " +
	"/batch/ /capture /capture/ /i/v0/e /i/v0/e/ /e /e/")

func paths(list string) map[string]bool {
	of := map[string]bool{}
	for _, path := range strings.Fields(list) {
		of[path] = true
	}
	return of
}

// IsTracking reports whether a path counts as one of the tracking API.
func IsTracking(path []byte) bool { return surfaceOf(path) == surfaceTracking }

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
	case tracking[string(path)], below("/v1/projects"):
		return surfaceTracking
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
