package compose

import (
	"errors"
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/resolver/campaigns"
)

// campaignTags are the merge tags of campaigns: the profile and its links to unsubscribe
// and to the preference page.
// The service's own tags stand in the texts that it prepares.
func campaignTags() *merge.Known {
	k := merge.Profile(TagUnsubscribe, TagPreferences)
	k.Other = ownTag
	return k
}

// ownTag reports whether a merge tag is one that the service puts into texts itself.
func ownTag(path []string) bool { return path[0] == TagOpen || path[0] == TagClick }

// templateTags are the merge tags of templates. What a template is for is not known when
// it is saved: tags event.… are filled in by flows, and names that are like no known one
// by the data of a single e-mail. Where it is used, its tags are checked again.
func templateTags() *merge.Known {
	k := merge.Profile(TagUnsubscribe, TagPreferences, campaigns.TagConfirm, TagCompany)
	k.Groups = append(k.Groups, "event")
	k.Other = func(path []string) bool { return ownTag(path) || k.Near(path) == "" }
	return k
}

// mailTags are the merge tags of a single e-mail with the data. Null is no value: it
// would leave a hole in the text.
func mailTags(data []byte) *merge.Known {
	k := merge.Profile(TagUnsubscribe, TagPreferences)
	k.Other = func(path []string) bool {
		value, given := rawjson.Lookup(data, path)
		kind := rawjson.KindOf(value)
		return ownTag(path) || given && kind != rawjson.Object && kind != rawjson.Array && kind != rawjson.Null
	}
	return k
}

// check finds merge tags that have neither a value nor a default, by their field.
func (c *Compiled) check(known *merge.Known) error {
	for _, f := range []struct {
		field string
		t     *merge.Template
	}{{"subject", c.SubjectTemplate}, {"sender_name", c.name}, {"body", c.html}, {"text", c.TextTemplate}, {"link", c.LinkTemplate}} {
		if err := f.t.Check(known); err != nil {
			return &ContentError{f.field, err}
		}
	}
	for _, v := range c.whatsApp {
		if err := v.t.Check(known); err != nil {
			return &ContentError{v.field, err}
		}
	}
	for i, t := range c.links {
		if err := t.Check(known); err != nil {
			return &ContentError{"body", fmt.Errorf("link %q: %w", c.Links[i], err)}
		}
	}
	return nil
}

// checkText says what is wrong with a content whose merge tags are those of campaigns.
func checkText(c campaigns.Content) error {
	x, err := Compile(c)
	if err != nil {
		return err
	}
	return x.check(campaignTags())
}

// missingData makes of a merge tag without a value what the caller of a single e-mail is
// to do.
func missingData(err error) error {
	var unknown *merge.UnknownTagError
	if !errors.As(err, &unknown) || unknown.Near != "" {
		return err
	}
	if strings.HasPrefix(unknown.Tag, "event.") {
		return fmt.Errorf("{{%s}} has a value in flows alone; give it a default in the template", unknown.Tag)
	}
	return fmt.Errorf("{{%s}} has no value; give data.%[1]s, or a default in the template", unknown.Tag)
}

// CheckText reports what is wrong with a text that is sent to a person as it is but for
// merge tags of the profile.
func CheckText(text string) error {
	t, err := merge.Parse(text, merge.Text)
	if err != nil {
		return err
	}
	return t.Check(merge.Profile(TagUnsubscribe, TagPreferences))
}

// The links of a recipient that are made when a message is sent, in what is rendered
// without sending it.
const (
	sampleUnsubscribe = "#unsubscribe"
	samplePreferences = "#preferences"
	sampleConfirm     = "#confirm"
)
