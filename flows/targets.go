package flows

import (
	"strings"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/webhook"
)

// TargetFaults lists the webhook steps whose URL guard does not allow, with the step
// and the path of the URL. It is beside [Flow.Validate] because it depends on how the
// server was started, and what a record does must not. URLs that cannot be read are
// left to Validate, and so are hosts with merge tags, which it never allows. A name
// that resolves to an address which is not allowed is found when the step is carried
// out.
func (f *Flow) TargetFaults(guard webhook.Guard) (faults Faults) {
	for i := range f.Steps {
		s := &f.Steps[i]
		if s.Webhook == nil || !hostWritten(s.Webhook.URL) {
			continue
		}
		t, err := merge.Parse(s.Webhook.URL, merge.Target)
		if err != nil {
			continue
		}
		filled, err := t.Render(sample)
		if err != nil || (webhook.Guard{AllowPrivate: true}).CheckURL(filled) != nil {
			continue
		}
		if err := guard.CheckURL(filled); err != nil {
			message, aboutURL := strings.CutPrefix(err.Error(), "url ")
			if !aboutURL {
				message = "is refused: " + message
			}
			faults = append(faults, Fault{s.ID, jsonform.Join(jsonform.Index("steps", i), "url"), message})
		}
	}
	return faults
}
