package resolver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/internal/redact"
)

// TestSettingsCommands: commands that set up an account say what they refuse, and change
// nothing then.
func TestSettingsCommands(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	account := r.m.accounts[testAccount]

	r.must(eventtypes.CommandDefine, eventtypes.Define{Name: "item_purchased"})
	if account.Types.Get("item_purchased") == nil {
		t.Error("the event type is not in the catalogue")
	}
	r.refuses("", eventtypes.CommandDefine, eventtypes.Define{Name: "Item Purchased!"})

	before := account.SecretHash
	r.refuses("secret_hash", CommandAppSecretSet, AppSecretSet{SecretHash: "short"})
	if account.SecretHash != before {
		t.Error("a refused secret was taken")
	}
	hash := strings.Repeat("ab", 32)
	r.must(CommandAppSecretSet, AppSecretSet{SecretHash: hash})
	if account.SecretHash != hash {
		t.Error("the secret was not taken")
	}

	fcm := credentials.Credential{Group: credentials.Push, Name: "fcm"}
	r.refuses("no credentials are set for fcm", credentials.CommandDelete, fcm)
	fcm.Config = json.RawMessage(`{"project_id":"p"}`)
	r.must(credentials.CommandSet, fcm)
	if _, is := r.view().Credentials().Get(credentials.Push, "fcm"); !is {
		t.Error("the credentials are not there")
	}
	r.must(credentials.CommandDelete, fcm)
	if _, is := r.view().Credentials().Get(credentials.Push, "fcm"); is {
		t.Error("the credentials are still there")
	}
	r.refuses("was refused, and is redacted", redact.CommandRefused, struct{}{})
}
