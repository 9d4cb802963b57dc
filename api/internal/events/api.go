package events

import (
	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure an [API]. All must be set.
type Options struct {
	Node    *node.Node
	History query.History
	// Chain has the instant of calls.
	Chain      *handler.Chain
	Evaluation *evaluation.Evaluator
}

// API answers the calls about events and attributes.
type API struct{ opts Options }

// New returns the calls about events and attributes.
func New(opts Options) *API { return &API{opts} }
