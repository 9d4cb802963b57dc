package api

import (
	"fmt"
	"sync"

	"github.com/VictoriaMetrics/metrics"
	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/histogram"
	"github.com/musterhq/muster/internal/password"
)

// Prefix is where the console API lives.
const Prefix = "/console/api/v1"

// API answers the console's calls. It is safe for concurrent use.
type API struct {
	opts   Options
	chain  *handler.Chain
	logins *loginThrottle
	// linkUse is held while a sign-in link is used up.
	linkUse sync.Mutex
	// passwords are password computations for people who are signed in or show a known
	// device, strangersPasswords those for everybody else: a flood of sign-ins leaves
	// room for the former.
	passwords, strangersPasswords *handler.Semaphore
	// evaluations are questions to history, combinations those the engine knows
	// the answers to.
	evaluations  *handler.Semaphore
	combinations *handler.Semaphore
	exports      *handler.Semaphore
	// decoy is the hash that the password of an unknown e-mail is checked
	// against, so that the answer takes as long.
	decoy string

	// watchTransitions is the node's, but where a test has slower ones.
	watchTransitions func(account uint64, segment string) (transitionWatch, bool)

	tracker *tracker
	columns *columnMaker

	// What anybody may send shares a part of the memory, so that it leaves room for
	// those who are let in: publicMemory for sign-ins and links of messages,
	// inboundMemory for what providers report.
	publicMemory, inboundMemory *ingest.Memory

	evaluationTime *histogram.Histogram
	snapshots      *metrics.Counter
	signIns        [signInResults]*metrics.Counter
}

// New returns an API. The error names the option at fault.
func New(opts Options) (*API, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	a := &API{
		opts:         opts,
		logins:       newLoginThrottle(opts.Now, opts.LoginThrottleEntries),
		passwords:    handler.NewSemaphore(1, opts.PasswordQueue, "too many passwords are being set"),
		evaluations:  handler.NewSemaphore(opts.Evaluations, opts.EvaluationQueue, "too many questions to history are waiting"),
		combinations: handler.NewSemaphore(opts.Evaluations, opts.EvaluationQueue, "too many previews are waiting"),
		exports:      handler.NewSemaphore(opts.Exports, opts.Exports, "too many exports are under way"),

		strangersPasswords: handler.NewSemaphore(opts.PasswordChecks, opts.PasswordQueue, "too many people are signing in"),
	}
	a.publicMemory, a.inboundMemory = opts.Memory.Part(8), opts.Memory.Part(8)
	a.chain = handler.NewChain(handler.Options{
		Node: opts.Node, Now: opts.Now, Rand: opts.Rand, Metrics: opts.Metrics, Logger: opts.Logger, Memory: opts.Memory, PublicMemory: a.publicMemory,
		BodyBytes: opts.BodyBytes, ReadTimeout: opts.ReadTimeout, Heartbeat: opts.Heartbeat,
	})
	a.watchTransitions = a.watchNode
	var err error
	if a.decoy, err = password.Decoy(opts.Rand, opts.Password); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	a.registerMetrics(opts.Metrics)
	a.tracker = newTracker(opts.Node, opts.Now, opts.Metrics)
	a.columns = newColumnMaker()
	return a, nil
}

// Close ends what streams. Calls under way are answered.
func (a *API) Close() {
	a.chain.Close()
	a.tracker.close()
	a.columns.close()
}

// NewRouter returns a router that answers unknown paths and methods in the
// envelope.
func NewRouter() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.HandleMethodNotAllowed = true
	r.NotFound = func(ctx *fasthttp.RequestCtx) {
		handler.WriteProblem(ctx, &handler.Problem{Status: fasthttp.StatusNotFound, Message: "there is nothing at this path"})
	}
	r.MethodNotAllowed = func(ctx *fasthttp.RequestCtx) {
		handler.WriteProblem(ctx, &handler.Problem{Status: fasthttp.StatusMethodNotAllowed,
			Message: "this path does not take " + string(ctx.Method()) + "; the header Allow lists what it takes"})
	}
	return r
}
