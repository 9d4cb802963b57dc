package api

import (
	"fmt"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/api/internal/automation"
	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/events"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/links"
	"github.com/musterhq/muster/api/internal/messages"
	"github.com/musterhq/muster/api/internal/profiles"
	"github.com/musterhq/muster/api/internal/providers"
	"github.com/musterhq/muster/api/internal/segments"
	"github.com/musterhq/muster/api/internal/settings"
	"github.com/musterhq/muster/api/internal/signup"
)

// Prefix begins the paths of the console API.
const Prefix = "/console/api/v1"

// API answers the console's calls. It is safe for concurrent use.
type API struct {
	opts Options
	// chain is what every call passes: who may make it, and how much of it is read.
	chain *handler.Chain

	// The semaphores bound how many calls work at once on what costs much: evaluations
	// are questions to history, combinations those the engine knows the answers to,
	// exports are downloads of whole lists.
	evaluations  *handler.Semaphore
	combinations *handler.Semaphore
	exports      *handler.Semaphore

	// watchTransitions is the node's, but where a test has slower ones.
	watchTransitions func(account uint64, segment string) (segments.Watch, bool)

	// evaluation answers the questions about definitions that several parts ask.
	evaluation *evaluation.Evaluator

	// The parts answer the calls, each those of its subject.
	accounts  *accounts.API // sessions, users, API keys and companies
	segments  *segments.API
	events    *events.API // attributes, too
	flows     *automation.API
	profiles  *profiles.API
	links     *links.API // links of messages
	providers *providers.API
	settings  *settings.API // sender domains and sources, too
	messages  *messages.API // campaigns, templates and webhooks
	signup    *signup.API   // signup forms
}

// New returns an API. The error names the option at fault.
func New(opts Options) (*API, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	a := &API{
		opts:         opts,
		evaluations:  handler.NewSemaphore(opts.Evaluation.AtOnce, opts.Evaluation.Queue, "too many questions to history are waiting"),
		combinations: handler.NewSemaphore(opts.Evaluation.AtOnce, opts.Evaluation.Queue, "too many previews are waiting"),
		exports:      handler.NewSemaphore(opts.Exports, opts.Exports, "too many exports are under way"),
	}
	// What anybody may send shares a part of the memory, so that it leaves room for
	// those who are let in: sign-ins and links of messages one, reports of providers
	// another.
	public, reports := opts.Memory.Part(8), opts.Memory.Part(8)
	a.chain = handler.NewChain(handler.Options{
		Node: opts.Node, Now: opts.Now, Rand: opts.Rand, Metrics: opts.Metrics, Logger: opts.Logger, Memory: opts.Memory, PublicMemory: public,
		BodyBytes: opts.BodyBytes, ReadTimeout: opts.ReadTimeout, Heartbeat: opts.Heartbeat,
	})
	a.watchTransitions = a.watchNode
	a.evaluation = evaluation.New(evaluation.Options{Node: opts.Node, History: opts.History, Chain: a.chain, Evaluations: a.evaluations, Combinations: a.combinations,
		Timeout: opts.Evaluation.Timeout, TimelineEvents: opts.Evaluation.TimelineEvents, Metrics: opts.Metrics, Logger: opts.Logger})
	a.segments = segments.New(segments.Options{Node: opts.Node, History: opts.History, Chain: a.chain, Evaluation: a.evaluation, Now: opts.Now,
		Watch: func(account uint64, segment string) (segments.Watch, bool) {
			return a.watchTransitions(account, segment)
		},
		ReadTimeout: opts.ReadTimeout, ListTimeout: opts.Evaluation.ListTimeout, Logger: opts.Logger})
	a.events = events.New(events.Options{Node: opts.Node, History: opts.History, Chain: a.chain, Evaluation: a.evaluation})
	a.flows = automation.New(automation.Options{Evaluation: a.evaluation, AllowPrivate: opts.AllowPrivate, PublicURL: opts.Providers.PublicURL, ReadTimeout: opts.ReadTimeout, PublishWait: opts.PublishWait})
	a.profiles = profiles.New(profiles.Options{History: opts.History, Chain: a.chain, Evaluation: a.evaluation, Now: opts.Now, AllowPrivate: opts.AllowPrivate, PublicURL: opts.Providers.PublicURL})
	a.links = links.New(links.Options{Node: opts.Node, Now: opts.Now, Memory: public, ReadTimeout: opts.ReadTimeout, Metrics: opts.Metrics, Logger: opts.Logger})
	a.signup = signup.New(signup.Options{PublicURL: opts.Providers.PublicURL, Now: opts.Now, Views: a.links.FormViews})
	a.providers = providers.New(providers.Options{Node: opts.Node, Now: opts.Now, Rand: opts.Rand, Memory: reports, Events: opts.Providers.Events, Claims: a.links.Claims,
		PublicURL: opts.Providers.PublicURL, AllowPrivate: opts.AllowPrivate, SNS: opts.Providers.SNS, Metrics: opts.Metrics, Logger: opts.Logger})
	a.settings = settings.New(settings.Options{Rand: opts.Rand, PublicURL: opts.Providers.PublicURL, DNS: opts.Providers.DNS, WriteKeyLastUsed: opts.LastUsed.WriteKey})
	a.messages = messages.New(messages.Options{Now: opts.Now, Rand: opts.Rand, Captured: opts.Captured.Messages, CapturesEmail: opts.Captured.Email, AllowPrivate: opts.AllowPrivate})
	var err error
	a.accounts, err = accounts.New(accounts.Options{Node: opts.Node, Peers: opts.Peers, Now: opts.Now, Rand: opts.Rand, KeyLastUsed: opts.LastUsed.APIKey, CapturedChannels: a.messages.CapturedChannels,
		Password: opts.SignIn.Password, PasswordChecks: opts.SignIn.Checks, PasswordQueue: opts.SignIn.Queue, LoginThrottleEntries: opts.SignIn.ThrottleEntries, SessionTTL: opts.SignIn.SessionTTL, Metrics: opts.Metrics})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return a, nil
}

// Close ends what streams. Calls under way are answered.
func (a *API) Close() {
	a.chain.Close()
	a.links.Close()
	a.evaluation.Close()
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

// watchNode watches the transitions of a segment at the node.
func (a *API) watchNode(account uint64, segment string) (segments.Watch, bool) {
	w, ok := a.opts.Node.WatchTransitions(account, segment)
	if !ok {
		return segments.Watch{}, false
	}
	if w.Err() != nil { // the account is another node's by now
		w.Close()
		return segments.Watch{}, false
	}
	return segments.Watch{Events: w.Events, From: w.From(), Close: w.Close}, true
}
