package messaging

import (
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver/campaigns"
)

// fillText fills in the merge tags of a text. A tag without a value or default is an error.
func fillText(source string, values merge.Lookup) (string, error) {
	t, err := merge.Parse(source, merge.Text)
	if err != nil {
		return "", err
	}
	if tag := t.Missing(values); tag != "" {
		return "", errMissing(tag)
	}
	return t.Render(values)
}

// fillTemplate fills in the merge tags of a template's parameters.
func fillTemplate(in *campaigns.WhatsAppTemplate, values merge.Lookup) (_ *text.Template, err error) {
	out := &text.Template{Name: in.Name, Language: in.Language, Parameters: make([]string, len(in.Parameters))}
	for i, p := range in.Parameters {
		if out.Parameters[i], err = fillText(p, values); err != nil {
			return nil, err
		}
	}
	out.Header, err = fillText(in.Header, values)
	return out, err
}
