package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/query"
)

const exportAbout = `muster export writes profiles, the log of consents, the members of a segment, or events, as JSON lines.

  muster export --to URL --credentials FILE profiles
  muster export --to URL --credentials FILE consents
  muster export --to URL --credentials FILE segments/<id>
  muster export --data DIR events`

// export writes to the standard output.
func (p *process) export(ctx context.Context) error {
	f := cli.New("muster export", exportAbout, p.stderr)
	e := addEngineFlags(f, "")
	c := &importConfig{}
	f.StringVar(&c.to, "to", "", "`URL` of a server, such as http://127.0.0.1:8080")
	f.StringVar(&c.credentials, "credentials", "", "`FILE` of credentials, for --to")
	c.ca = addCA(f)
	f.StringVar(&c.account, "account", "", "`ACCOUNT` id, for --data when there are several")
	eventType := f.String("event-type", "", "export events of this `TYPE` only")
	args, err := f.Parse(p.args, p.env)
	switch {
	case err != nil:
		return usageError{err}
	case len(args) != 1:
		return wrongUsage("say what to export: profiles, consents, events or segments/<id>")
	case (*e.dir == "") == (c.to == ""):
		return wrongUsage("say where from: --data DIR for a directory that no server has open, or --to URL with --credentials FILE for a server")
	case c.to != "" && c.credentials == "":
		return wrongUsage("--to needs --credentials, the file that muster serve wrote")
	}
	kind, id, err := api.SplitExport(args[0])
	if err != nil {
		return usageError{err}
	}
	out := bufio.NewWriterSize(p.stdout, 64<<10)
	if c.to != "" {
		err = exportFrom(ctx, c, args[0], *eventType, out, p.stderr)
	} else {
		log, lerr := logger(p.stderr, *e.logLevel, *e.logFormat)
		if lerr != nil {
			return lerr
		}
		if c.engine, err = p.engineOptions(e, log, 0); err != nil {
			return err
		}
		err = c.exportData(ctx, kind, id, *eventType, out)
	}
	return errors.Join(err, out.Flush())
}

// exportData reads a directory that no process has open.
func (c *importConfig) exportData(ctx context.Context, kind, id, eventType string, w io.Writer) (err error) {
	if err := c.checkDirectory(); err != nil {
		return err
	}
	eng, err := engine.Open(ctx, c.engine)
	if errors.Is(err, engine.ErrInUse) {
		return fmt.Errorf("%w. To export while it runs, use --to URL with --credentials FILE", err)
	}
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, eng.Close(ctx))
	}()
	if err := eng.Loaded(ctx); err != nil {
		return err
	}
	account, err := c.pickAccount(eng.Node.Accounts())
	if err != nil {
		return err
	}
	x := &api.Exporter{Node: eng.Node, History: eng.History}
	switch {
	case kind == "profiles":
		return x.Profiles(ctx, account, w)
	case kind == "consents":
		return x.Consents(ctx, account, w)
	case kind == "segments":
		return x.Segment(ctx, account, id, w)
	}
	var types []string // all
	if eventType != "" {
		types = []string{eventType}
	}
	err = x.Events(ctx, account, types, w)
	if errors.Is(err, query.ErrUnavailable) {
		return fmt.Errorf("%w; run muster repair --data %s, which waits until that is done, and export again", err, c.engine.Dir)
	}
	return err
}

// exportFrom asks a server, as the person of the credentials.
func exportFrom(ctx context.Context, c *importConfig, what, eventType string, w, notes io.Writer) error {
	creds, err := loadCredentials(c.credentials)
	if err != nil {
		return err
	}
	u, err := url.Parse(c.to)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return wrongUsage("--to is %q; give the server's URL, such as http://127.0.0.1:8080", c.to)
	}
	base := u.Scheme + "://" + u.Host + api.Prefix
	transport, err := clientTransport(*c.ca, notes)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &bounded{transport, firstByteTime, idleTime}}
	defer client.CloseIdleConnections()
	body, err := json.Marshal(map[string]string{"email": creds.ConsoleEmail, "password": creds.ConsolePassword})
	if err != nil {
		return err
	}
	var session struct{ Data struct{ Token string } }
	if err := consoleCall(ctx, client, "POST", base+"/session", "", body, func(r io.Reader) error { return json.NewDecoder(r).Decode(&session) }); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	token := session.Data.Token
	defer func() { // with time of its own: the export may have been stopped
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = consoleCall(ctx, client, "DELETE", base+"/session", token, nil, nil)
	}()
	kind, id, _ := strings.Cut(what, "/")
	path := base + "/export/" + kind
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	if eventType != "" {
		path += "?event_type=" + url.QueryEscape(eventType)
	}
	return consoleCall(ctx, client, "GET", path, token, nil, func(r io.Reader) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// consoleCall makes a call and hands a successful answer on.
func consoleCall(ctx context.Context, client *http.Client, method, to, token string, body []byte, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		return unreachable(req.URL.Scheme+"://"+req.URL.Host, "to", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var a struct{ Message string }
		_ = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&a)
		return fmt.Errorf("the server answers %d: %s", res.StatusCode, a.Message)
	}
	if read == nil {
		return nil
	}
	return read(res.Body)
}
