package keyapi

import (
	"sync"

	"github.com/fasthttp/router"

	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
)

// API answers Surfaces A and C. It is safe for concurrent use.
type API struct {
	opts     Options
	backend  keycall.Backend
	surfaceA *surface
	surfaceC *surface
	uses     *uses
	tests    *limiter // of accounts, of tests of campaigns

	stopped sync.Once
	stop    chan struct{}
	done    sync.WaitGroup
}

// New returns an API and starts recording when keys are used; Close ends that.
// The error names the option or the route at fault.
func New(opts Options) (*API, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	a := &API{opts: opts, backend: keycall.Backend{Node: opts.Node, History: opts.History, Memory: opts.Memory, BodyBytes: opts.BodyBytes}, uses: newUses(), tests: newLimiter(opts.Now), stop: make(chan struct{})}
	a.surfaceA = newSurface("a", a.groupsA(), opts.Now)
	a.surfaceA.envelope, a.surfaceA.perMinute = envelopeA{opts.Memory}, a.perMinuteA
	a.surfaceC = newSurface("c", a.groupsC(), opts.Now)
	a.surfaceC.envelope, a.surfaceC.perMinute = envelopeC{opts.Rand, opts.Memory}, perMinuteC
	known := operation.KeyPermissions()
	for _, s := range []*surface{a.surfaceA, a.surfaceC} {
		if err := s.check(known); err != nil {
			return nil, err
		}
		s.metrics = newSurfaceMetrics(opts.Metrics, s)
	}
	if err := a.checkSession(); err != nil {
		return nil, err
	}
	a.registerMetrics(opts.Metrics)
	a.done.Go(a.flushLoop)
	return a, nil
}

// Close records the last uses of keys. Requests should have ended.
func (a *API) Close() {
	a.stopped.Do(func() { close(a.stop) })
	a.done.Wait()
}

// Register adds all paths under the surfaces' prefixes that r does not know
// otherwise, and the calls of the console that people have because keys have them.
func (a *API) Register(r *router.Router) {
	for _, s := range []*surface{a.surfaceA, a.surfaceC} {
		h := a.serve(s)
		r.ANY(s.Prefix, h)
		r.ANY(s.Prefix+"/{path:*}", h)
	}
	a.opts.Console.RegisterKeyCalls(r, a.SessionGroups())
}
