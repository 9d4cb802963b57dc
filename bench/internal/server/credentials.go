package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
)

// Credentials is the file a new server writes.
type Credentials struct {
	BaseURL         string `json:"base_url"`
	ConsoleURL      string `json:"console_url"`
	AccountID       string `json:"account_id"`
	AppID           string `json:"app_id"`
	AppSecret       string `json:"app_secret"`
	APIKey          string `json:"api_key"`
	ConsoleEmail    string `json:"console_email"`
	ConsolePassword string `json:"console_password"`
}

// ReadCredentials reads the file and refuses one that is not complete or names
// another machine.
func ReadCredentials(path string) (Credentials, error) {
	var c Credentials
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("reading the credentials: %w", err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("credentials %s: %w", path, err)
	}
	for name, value := range map[string]string{
		"base_url": c.BaseURL, "console_url": c.ConsoleURL, "app_id": c.AppID, "app_secret": c.AppSecret,
		"console_email": c.ConsoleEmail, "console_password": c.ConsolePassword,
	} {
		if value == "" {
			return c, fmt.Errorf("credentials %s have no %s", path, name)
		}
	}
	if _, err := LoopbackURL(c.ConsoleURL); err != nil {
		return c, fmt.Errorf("console_url: %w", err)
	}
	if _, err := LoopbackURL(c.BaseURL); err != nil {
		return c, fmt.Errorf("base_url: %w", err)
	}
	return c, nil
}

// LoopbackURL parses a URL and refuses hosts off the loopback interface.
func LoopbackURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" {
		return nil, fmt.Errorf("%q is no http URL", text)
	}
	if err := loader.CheckLoopback(u.Host); err != nil {
		return nil, err
	}
	return u, nil
}

// Account returns the number of the account, by which it belongs to a partition.
func (c Credentials) Account() (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(c.AccountID, "acc_"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("account id %q: %w", c.AccountID, err)
	}
	return n, nil
}

// Target is where events are sent, singly or in batches.
func (c Credentials) Target(batch bool) (loader.Target, error) {
	u, err := LoopbackURL(c.BaseURL)
	if err != nil {
		return loader.Target{}, fmt.Errorf("base_url: %w", err)
	}
	path := u.Path + "/events"
	if batch {
		path += "/batch"
	}
	return loader.Target{
		Address: u.Host, Path: path, Expect: loader.ExpectOutcome,
		Header: [][2]string{{"X-App-Id", c.AppID}, {"X-App-Secret", c.AppSecret}},
	}, nil
}

// TrackingTarget is where batches for the tracking API are sent, with a write key.
func (c Credentials) TrackingTarget(writeKey string) (loader.Target, error) {
	u, err := LoopbackURL(c.BaseURL)
	if err != nil {
		return loader.Target{}, fmt.Errorf("base_url: %w", err)
	}
	return loader.Target{
		Address: u.Host, Path: "/v1/batch", Expect: loader.ExpectTracked,
		Header: [][2]string{{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(writeKey+":"))}},
	}, nil
}

// Fleet prepares connections that send what spec says.
func (c Credentials) Fleet(spec payload.Spec, connections int) (*loader.Fleet, error) {
	target, err := c.Target(spec.Batch > 0)
	if err != nil {
		return nil, err
	}
	return loader.NewFleet(target, spec, connections)
}

// At returns the credentials with the addresses of another node, http://HOST:PORT.
func (c Credentials) At(origin string) Credentials {
	for _, address := range []*string{&c.BaseURL, &c.ConsoleURL} {
		if u, err := url.Parse(*address); err == nil {
			*address = origin + u.Path
		}
	}
	return c
}
