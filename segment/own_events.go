package segment

import "slices"

// AnyEvent is the event of the condition on the field event_count: events of all types
// that were sent to the service, and none that it recorded itself.
const AnyEvent = "*"

// ownEvents are the types of the events that the service records itself.
var ownEvents = func() map[string]bool {
	types := map[string]bool{}
	for _, t := range []string{
		"list_joined", "list_left", "subscribed", "unsubscribed", "suppressed", "unsuppressed",
		"device_registered", "device_retired", "flow_entered", "flow_completed", "flow_exited", "signup_form_submitted",
		"revenue_recorded",
	} {
		types[t] = true
	}
	for _, channel := range channels {
		for _, deed := range []string{
			"sent", "failed", "delivered", "opened", "clicked", "bounced", "soft_bounced", "complained", "unsubscribed", "received",
		} {
			types[channel+"_"+deed] = true
		}
	}
	for _, deed := range []string{"seen", "dismissed"} { // a click has the name that other channels give it
		types["in_app_"+deed] = true
	}
	return types
}()

// OwnEvent reports whether the service itself records events of a type.
func OwnEvent[T string | []byte](eventType T) bool { return ownEvents[string(eventType)] }

// OwnEvents are the types of the events that the service records itself, sorted.
func OwnEvents() []string {
	list := make([]string, 0, len(ownEvents))
	for t := range ownEvents {
		list = append(list, t)
	}
	slices.Sort(list)
	return list
}

// OfType reports whether events of a type are those that a condition names. sent says
// that the event was sent to the service; events of types that the service does not
// record itself always were.
func OfType(event, eventType string, sent bool) bool {
	return event == eventType || event == AnyEvent && (sent || !OwnEvent(eventType))
}
