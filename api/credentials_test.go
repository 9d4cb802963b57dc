package api

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/resolver"
)

func TestCredentialsFile(t *testing.T) {
	t.Parallel()
	c, err := accounts.NewCredentials(rand.Reader, "http://127.0.0.1:1234")
	ok(t, err)
	if c.BaseURL != "http://127.0.0.1:1234/api/v1" || c.BaseURLV1 != "http://127.0.0.1:1234/v1" || c.ConsoleURL != "http://127.0.0.1:1234/console" ||
		c.AppID[4:] != c.AccountID[4:] || !strings.HasPrefix(c.APIKey, "svc_live_") || len(c.APIKey) < len("svc_live_")+27 {
		t.Errorf("have %+v", c)
	}
	path := filepath.Join(t.TempDir(), "credentials.json")
	if _, err := accounts.LoadCredentials(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	ok(t, c.Save(path))
	info, err := os.Stat(path)
	ok(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %o", info.Mode().Perm())
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("files were left behind: %v", entries)
	}
	back, err := accounts.LoadCredentials(path)
	if err != nil || back != c {
		t.Errorf("read back %+v, %v", back, err)
	}
	var printed bytes.Buffer
	ok(t, c.Print(&printed))
	fields := map[string]string{}
	ok(t, json.Unmarshal(printed.Bytes(), &fields))
	for _, name := range []string{"base_url", "base_url_v1", "console_url", "account_id", "app_id", "app_secret", "api_key", "console_email", "console_password"} {
		if fields[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	for _, bad := range []string{"", "{}", "[]", strings.Replace(printed.String(), c.AccountID, "acc_0000000000000001", 1), strings.Replace(printed.String(), c.AppSecret, "short", 1)} {
		ok(t, os.WriteFile(path, []byte(bad), 0o600))
		if _, err := accounts.LoadCredentials(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%.40q is taken for credentials (%v)", bad, err)
		}
	}
}

func TestCredentialsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 20 {
		c, err := accounts.NewCredentials(rand.Reader, "")
		ok(t, err)
		for _, x := range []string{c.AppID, c.AppSecret, c.APIKey, c.ConsoleEmail, c.ConsolePassword} {
			if seen[x] {
				t.Fatalf("%s was drawn twice", x)
			}
			seen[x] = true
		}
		if !regexp.MustCompile(`^owner-[a-z2-7]{16}@muster\.local$`).MatchString(c.ConsoleEmail) {
			t.Errorf("the first person is %s", c.ConsoleEmail)
		}
	}
}

// TestBootstrapOnce: the first account is made once; no secret of it is kept.
func TestBootstrapOnce(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	other, err := accounts.NewCredentials(rand.Reader, "")
	ok(t, err)
	var refusal *resolver.Refusal
	if err := other.Bootstrap(t.Context(), s.node, rand.Reader); !errors.As(err, &refusal) || refusal.Code != "conflict" {
		t.Errorf("a second account: %v", err)
	}
	account, _ := tokens.Account(s.token, tokens.Session)
	ok(t, s.node.Read(t.Context(), account, func(v *resolver.View) error {
		u, found := v.Access().UserByEmail(s.creds.ConsoleEmail)
		if !found || !slices.Contains(u.Permissions, "settings:write") || strings.Contains(u.PasswordHash, s.creds.ConsolePassword) {
			t.Errorf("have %+v", u)
		}
		return nil
	}))
}
