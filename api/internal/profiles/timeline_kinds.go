package profiles

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/segment"
)

// The kinds of entries of a timeline.
const (
	kindEvent       = "event"       // that was sent to the service
	kindTransition  = "transition"  // of a segment
	kindMessage     = "message"     // what became of one, or that a flow skipped it
	kindFlow        = "flow"        // an enrolment began or ended
	kindStep        = "step"        // of a flow
	kindMerge       = "merge"       // with another profile
	kindConsent     = "consent"     // given or withdrawn
	kindSuppression = "suppression" // of a channel, or its end
	kindList        = "list"        // joined or left
	kindDevice      = "device"      // registered or retired
)

var timelineKinds = []string{kindEvent, kindTransition, kindMessage, kindFlow, kindStep, kindMerge, kindConsent, kindSuppression, kindList, kindDevice}

// kindOfEvent is the kind of an event, by its type and whether it was sent.
func kindOfEvent(eventType string, sent bool) string {
	switch {
	case sent || !segment.OwnEvent(eventType):
		return kindEvent
	case strings.HasPrefix(eventType, "list_"):
		return kindList
	case strings.HasPrefix(eventType, "device_"):
		return kindDevice
	case strings.HasPrefix(eventType, "flow_"):
		return kindFlow
	case eventType == "suppressed" || eventType == "unsuppressed":
		return kindSuppression
	case eventType == "subscribed" || strings.HasSuffix(eventType, "unsubscribed"):
		return kindConsent
	}
	return kindMessage
}

// kindOfStep is message for one that was not sent.
func kindOfStep(s *automation.Step) string {
	switch s.Result {
	case flows.NoAddress, flows.NotSubscribed, flows.Suppressed, flows.QuietHours, flows.FrequencyCap:
		return kindMessage
	}
	return kindStep
}

// askedKinds reads the query's kinds; all without any.
func askedKinds(text string) (map[string]bool, error) {
	asked := map[string]bool{}
	if text == "" {
		for _, k := range timelineKinds {
			asked[k] = true
		}
		return asked, nil
	}
	for k := range strings.SplitSeq(text, ",") {
		if k = strings.TrimSpace(k); !slices.Contains(timelineKinds, k) {
			return nil, handler.BadField("kinds", "kinds must be some of %s, with commas between", strings.Join(timelineKinds, ", "))
		}
		asked[k] = true
	}
	return asked, nil
}

// eventTypesOf is how history is asked for events of kinds, by the types of those that the
// service recorded itself: types alone, no type when
// that is empty, or without except when it is nil.
func eventTypesOf(kinds map[string]bool) (types, except []string) {
	if !kinds[kindEvent] {
		types = []string{}
	}
	for _, t := range segment.OwnEvents() {
		switch k := kinds[kindOfEvent(t, false)]; {
		case kinds[kindEvent] && !k:
			except = append(except, t)
		case !kinds[kindEvent] && k:
			types = append(types, t)
		}
	}
	return types, except
}
