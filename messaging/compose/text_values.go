package compose

import (
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/whatsapp"
)

// fill fills in the merge tags of a text. A tag without a value or default is an error.
func fill(source string, mode merge.Mode, values merge.Lookup) (string, error) {
	t, err := merge.Parse(source, mode)
	if err != nil {
		return "", err
	}
	if tag := t.Missing(values); tag != "" {
		return "", errMissing(tag)
	}
	return t.Render(values)
}

// FillTemplate fills in the merge tags of a template's values.
func FillTemplate(in *whatsapp.Template, values merge.Lookup) (*whatsapp.Template, error) {
	out, err := in.Map(func(_, value string, mode merge.Mode) (string, error) { return fill(value, mode, values) })
	if err == nil && in.Header != "" && out.Header == "" {
		err = whatsapp.Faultf("header", "should not be empty; WhatsApp takes no empty values")
	}
	return out, err
}
