package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/cli"
)

const adminUsage = `muster admin manages companies, users and API keys of a server, as the person
that signs in may. What it prints is JSON.

  company list
  company create NAME EMAIL            its credentials are shown once
  company enable-api COMPANY           let its API keys in (disable-api: keep them out)
  company deactivate COMPANY           keep everybody of it out (activate: let them in)
  credits add COMPANY AMOUNT           top up e-mail credits
  key list
  key create NAME [PERMISSION…]        the key is shown once; by default all that you may do
  key revoke KEY
  user list
  user create EMAIL [PERMISSION…]      with a password that is shown once

The password is that of the credentials file, or stands in MUSTER_PASSWORD.`

// adminPassword is the environment variable of the password. There is no flag of
// it: arguments show in lists of processes.
const adminPassword = "MUSTER_PASSWORD"

// adminCommand is what one subcommand asks of the console API.
type adminCommand struct {
	method, path string
	body         any
	// shown is added to what is printed: what only this command knows.
	shown map[string]string
}

// admin runs one subcommand.
func (p *process) admin(ctx context.Context) error {
	f := cli.New("muster admin", adminUsage, p.stderr)
	to := f.String("to", "", "`URL` of the server, such as http://127.0.0.1:8080; by default that of the credentials")
	file := f.String("credentials", "", "`FILE` of credentials that muster serve wrote")
	ca := addCA(f)
	email := f.String("email", "", "`EMAIL` to sign in with; by default that of the credentials")
	args, err := f.Parse(p.args, p.env)
	if err != nil {
		return usageError{err}
	}
	command, err := newAdminCommand(args)
	if err != nil {
		return err
	}
	c := consoleClient{}
	password, _ := p.env(adminPassword)
	if *file != "" {
		creds, err := loadCredentials(*file)
		if err != nil {
			return err
		}
		c.base = strings.TrimSuffix(creds.ConsoleURL, "/console") + api.Prefix
		if *email == "" {
			*email = creds.ConsoleEmail
		}
		if password == "" && *email == creds.ConsoleEmail {
			password = creds.ConsolePassword
		}
	}
	if *to != "" {
		u, err := url.Parse(*to)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return wrongUsage("--to is %q; give the server's URL, such as http://127.0.0.1:8080", *to)
		}
		c.base = u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/") + api.Prefix
	}
	switch {
	case c.base == "":
		return wrongUsage("say which server: --to URL, or --credentials FILE")
	case *email == "" || password == "":
		return wrongUsage("say who you are: --credentials FILE, or --email EMAIL with the password in %s", adminPassword)
	}
	if c.client.Transport, err = clientTransport(*ca, p.stderr); err != nil {
		return err
	}
	defer c.client.CloseIdleConnections()
	return c.run(ctx, *email, password, command, p.stdout)
}

func newAdminCommand(args []string) (*adminCommand, error) {
	name := strings.Join(args[:min(2, len(args))], " ")
	rest := args[min(2, len(args)):]
	get := func(path string) *adminCommand { return &adminCommand{method: "GET", path: path} }
	company := func(body any, path ...string) *adminCommand {
		method := "PATCH"
		if len(path) > 0 {
			method = "POST"
		}
		return &adminCommand{method: method, path: "/companies/" + url.PathEscape(rest[0]) + strings.Join(path, ""), body: body}
	}
	flag := func(field string, value bool) *adminCommand { return company(map[string]bool{field: value}) }
	want := map[string]int{
		"company create": 2, "company enable-api": 1, "company disable-api": 1, "company activate": 1, "company deactivate": 1,
		"credits add": 2, "key create": 1, "key revoke": 1, "user create": 1,
	}[name]
	if more := name == "key create" || name == "user create"; len(rest) < want || len(rest) > want && !more {
		return nil, wrongUsage("%s takes %d arguments, has %d\n\n%s", name, want, len(rest), adminUsage)
	}
	switch name {
	case "company list":
		return get("/companies"), nil
	case "company create":
		return &adminCommand{method: "POST", path: "/companies", body: map[string]string{"name": rest[0], "email": rest[1]}}, nil
	case "company enable-api", "company disable-api":
		return flag("api_access", name == "company enable-api"), nil
	case "company activate", "company deactivate":
		return flag("active", name == "company activate"), nil
	case "credits add":
		n, err := strconv.ParseInt(rest[1], 10, 64)
		if err != nil {
			return nil, wrongUsage("AMOUNT is %q; give a whole number of e-mail credits", rest[1])
		}
		return company(map[string]int64{"amount": n}, "/credits"), nil
	case "key list":
		return get("/api-keys"), nil
	case "key create":
		body := map[string]any{"name": rest[0]}
		if len(rest) > 1 {
			body["permissions"] = rest[1:]
		}
		return &adminCommand{method: "POST", path: "/api-keys", body: body}, nil
	case "key revoke":
		return &adminCommand{method: "DELETE", path: "/api-keys/" + url.PathEscape(rest[0])}, nil
	case "user list":
		return get("/users"), nil
	case "user create":
		var b [18]byte
		if _, err := io.ReadFull(rand.Reader, b[:]); err != nil {
			return nil, err
		}
		password := base64.RawURLEncoding.EncodeToString(b[:])
		return &adminCommand{method: "POST", path: "/users", shown: map[string]string{"password": password},
			body: map[string]any{"email": rest[0], "password": password, "permissions": rest[1:]}}, nil
	}
	return nil, wrongUsage("there is no command %q\n\n%s", name, adminUsage)
}

// consoleClient calls the console API.
type consoleClient struct {
	client http.Client
	base   string
	token  string
}

// adminTimeout bounds one call.
const adminTimeout = time.Minute

// run signs in, runs the command, prints its answer and signs out.
func (c *consoleClient) run(ctx context.Context, email, password string, command *adminCommand, out io.Writer) (err error) {
	var in struct{ Token string }
	data, _, err := c.call(ctx, "POST", "/session", map[string]string{"email": email, "password": password})
	if err == nil {
		err = json.Unmarshal(data, &in)
	}
	if err != nil {
		return fmt.Errorf("sign in as %s: %w", email, err)
	}
	c.token = in.Token
	defer func() {
		_, _, e := c.call(ctx, "DELETE", "/session", nil)
		err = errors.Join(err, e)
	}()
	next := ""
	for {
		path := command.path
		if next != "" {
			path += "?cursor=" + url.QueryEscape(next)
		}
		if data, next, err = c.call(ctx, command.method, path, command.body); err != nil {
			return err
		}
		if err := printItems(out, data, command.shown); err != nil || next == "" {
			return err
		}
	}
}

// printItems writes the items of a list one by one.
func printItems(out io.Writer, data json.RawMessage, more map[string]string) error {
	var items []json.RawMessage
	if json.Unmarshal(data, &items) != nil {
		items = []json.RawMessage{data}
	}
	for _, x := range items {
		if len(more) > 0 {
			fields := map[string]json.RawMessage{}
			if err := json.Unmarshal(x, &fields); err != nil {
				return err
			}
			for k, v := range more {
				fields[k], _ = json.Marshal(v) // a string
			}
			var err error
			if x, err = json.Marshal(fields); err != nil {
				return err
			}
		}
		var buf bytes.Buffer
		if err := json.Indent(&buf, x, "", "  "); err != nil {
			return err
		}
		buf.WriteByte('\n')
		if _, err := out.Write(buf.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// call makes one call and returns its data, and the cursor of the next page.
func (c *consoleClient) call(ctx context.Context, method, path string, body any) (data json.RawMessage, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, "", err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, in)
	if err != nil {
		return nil, "", err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return nil, "", unreachable(strings.TrimSuffix(c.base, api.Prefix), "to", err)
	}
	defer res.Body.Close()
	const maxAnswer = 16 << 20
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, "", fmt.Errorf("%s stopped in the middle of its answer: %w; look at the server's log, and try again", c.base+path, err)
	}
	var a struct {
		Message, Next string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, "", fmt.Errorf("%s %s: HTTP %d is no answer of the console API: %w", method, c.base+path, res.StatusCode, err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("%s (HTTP %d)", a.Message, res.StatusCode)
	}
	return a.Data, a.Next, nil
}
