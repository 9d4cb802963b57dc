package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/cmd/muster/internal/importer"
)

// importConfig is the flags of import.
type importConfig struct {
	files        []string
	to           string // origin of a server; empty to import in this process
	credentials  string
	ca           *string // file of certificates to trust, empty for the system's
	format       string
	account      string
	columns      importer.CSVOptions
	triggerFlows bool
	strict       bool
	engine       engine.Options
}

func (p *process) importConfig() (*importConfig, error) {
	f := cli.New("muster import", `muster import brings in files of past events; "-" is standard input.
With --to it sends them to a server. With --data it opens the data directory
itself, which no server may have at that time.`, p.stderr)
	e := addEngineFlags(f, "")
	c := &importConfig{}
	f.StringVar(&c.to, "to", "", "`URL` of a server, such as http://127.0.0.1:8080")
	f.StringVar(&c.credentials, "credentials", "", "`FILE` of credentials, for --to")
	c.ca = addCA(f)
	f.StringVar(&c.format, "format", "", "jsonl or csv; by default what the file's name ends with")
	f.StringVar(&c.account, "account", "", "`ACCOUNT` id, for --data when there are several")
	f.BoolVar(&c.triggerFlows, "trigger-flows", false, "let the events enrol profiles into flows")
	f.BoolVar(&c.strict, "strict", false, "end with status 1 when a row was refused")
	columns := f.List("columns", "types of CSV columns, such as `properties.zip:text,properties.n:number`; by default a column is of numbers when all its cells are")
	names := f.List("map", "names of CSV columns, such as `customer_no=external_id,when=timestamp`")
	var err error
	if c.files, err = f.Parse(p.args, p.env); err != nil {
		return nil, usageError{err}
	}
	// What stands in the arguments wins over the environment, also over the other
	// of the two.
	switch {
	case *e.dir != "" && c.to != "" && f.Given("to") && !f.Given("data"):
		*e.dir = ""
	case *e.dir != "" && c.to != "" && f.Given("data") && !f.Given("to"):
		c.to = ""
	}
	switch {
	case *e.dir == "" && c.to == "":
		return nil, wrongUsage("say where to: --data DIR for a directory that no server has open, or --to URL with --credentials FILE for a server")
	case *e.dir != "" && c.to != "":
		return nil, wrongUsage("--data and --to do not go together; give one of them")
	case c.to != "" && c.credentials == "":
		return nil, wrongUsage("--to needs --credentials, the file that muster serve wrote")
	case len(c.files) == 0:
		return nil, wrongUsage("name the files to import")
	}
	if c.columns, err = importer.ParseCSVOptions(*columns, *names); err != nil {
		return nil, usageError{err}
	}
	for _, name := range c.files {
		if _, err := formatOf(c.format, name); err != nil {
			return nil, err
		}
	}
	log, err := logger(p.stderr, *e.logLevel, *e.logFormat)
	if err != nil {
		return nil, err
	}
	c.engine, err = p.engineOptions(e, log, 0)
	return c, err
}

// formatOf is the format of a file, by the flag or by its name.
func formatOf(flag, name string) (importer.Format, error) {
	if flag == "" {
		base := strings.TrimSuffix(strings.TrimSuffix(name, ".zst"), ".gz")
		switch filepath.Ext(base) {
		case ".csv":
			flag = "csv"
		case ".jsonl", ".ndjson":
			flag = "jsonl"
		default:
			return "", wrongUsage("the name %q does not tell its format; give --format jsonl or --format csv", name)
		}
	}
	switch f := importer.Format(flag); f {
	case importer.JSONLines, importer.CSV:
		return f, nil
	}
	return "", wrongUsage("--format is %q; use jsonl or csv", flag)
}

// importFiles imports one file after the other.
func (p *process) importFiles(ctx context.Context) (err error) {
	c, err := p.importConfig()
	if err != nil {
		return err
	}
	target, closeTarget, err := c.target(ctx, p.stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTarget()) }()
	refused := uint64(0)
	var nothing []string // files of which every new row was refused
	for _, name := range c.files {
		format, err := formatOf(c.format, name)
		if err != nil {
			return err
		}
		sum, err := p.importFile(ctx, target, c, format, name)
		refused += sum.RefusedRows
		if err != nil {
			return err
		}
		if sum.RefusedRows > 0 && sum.Accepted == 0 && sum.Duplicates == 0 {
			nothing = append(nothing, name)
		}
	}
	if c.strict && refused > 0 {
		return fmt.Errorf("%d rows were refused", refused)
	}
	if len(nothing) > 0 {
		return fmt.Errorf("nothing was imported from %s: every row that is not stored was refused; remove the cause and import the file again, which tries them again", strings.Join(nothing, ", "))
	}
	return nil
}

// target opens what is imported to.
func (c *importConfig) target(ctx context.Context, notes io.Writer) (_ importer.Target, closeTarget func() error, err error) {
	if c.to != "" {
		creds, err := loadCredentials(c.credentials)
		if err != nil {
			return nil, nil, err
		}
		base, err := baseURL(c.to)
		if err != nil {
			return nil, nil, err
		}
		transport, err := clientTransport(*c.ca, notes)
		if err != nil {
			return nil, nil, err
		}
		client := &http.Client{Transport: transport}
		t := importer.ToServer(importer.Server{
			Client: client, URL: base, AppID: creds.AppID, AppSecret: creds.AppSecret, TriggerFlows: c.triggerFlows,
			Waiting: func(why error) { fmt.Fprintf(notes, "waiting for %s, for about ten minutes: %v\n", c.to, why) },
		})
		return t, func() error { client.CloseIdleConnections(); return nil }, nil
	}
	if err := c.checkDirectory(); err != nil {
		return nil, nil, err
	}
	// Opening writes to the directory, which an import that cannot begin leaves as it is.
	for _, name := range c.files {
		if name == "-" {
			continue
		}
		if _, err := os.Stat(name); err != nil {
			return nil, nil, err
		}
	}
	eng, err := engine.Open(ctx, c.engine)
	if errors.Is(err, engine.ErrInUse) {
		return nil, nil, fmt.Errorf("%w. To import while it runs, use --to URL with --credentials FILE", err)
	}
	if err != nil {
		return nil, nil, err
	}
	closeTarget = func() error {
		// All of it is in the log; history takes up the rest at the next start.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return eng.Close(ctx)
	}
	err = eng.Loaded(ctx)
	var account uint64
	if err == nil {
		account, err = c.pickAccount(eng.Node.Accounts())
	}
	if err == nil {
		var t importer.Target
		if t, err = importer.ToNode(eng.Node, account, c.triggerFlows, time.Now, rand.Reader); err == nil {
			return t, closeTarget, nil
		}
	}
	return nil, nil, errors.Join(err, closeTarget())
}

// checkDirectory refuses a directory that is not there, and one whose history is in ClickHouse
// where the flags do not name that: history would be built again in the directory, and only a
// start of the service moves it.
func (c *importConfig) checkDirectory() error {
	if err := checkDirectory("data", c.engine.Dir, true); err != nil {
		return err
	}
	elsewhere, err := engine.HistoryElsewhere(c.engine.Dir)
	if err != nil || !elsewhere || c.engine.ClickHouse != nil {
		return err
	}
	return fmt.Errorf("%s has its history in ClickHouse. Name the database with --clickhouse, as for muster serve; a start of muster serve without it takes history back into the directory", c.engine.Dir)
}

// pickAccount finds the account to import to.
func (c *importConfig) pickAccount(accounts []uint64) (uint64, error) {
	if c.account == "" && len(accounts) == 1 {
		return accounts[0], nil
	}
	if c.account == "" && len(accounts) == 0 {
		return 0, fmt.Errorf("%s has no account yet; run muster serve --data %s once, which makes it", c.engine.Dir, c.engine.Dir)
	}
	if c.account == "" {
		return 0, wrongUsage("%s has %d accounts; name one with --account", c.engine.Dir, len(accounts))
	}
	if hex, ok := strings.CutPrefix(c.account, "acc_"); ok {
		if n, err := strconv.ParseUint(hex, 16, 64); err == nil {
			for _, a := range accounts {
				if a == n {
					return n, nil
				}
			}
		}
	}
	return 0, fmt.Errorf("%s has no account %q", c.engine.Dir, c.account)
}

// baseURL is that of Surface B at an origin.
func baseURL(to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", wrongUsage("--to is %q; give the server's URL, such as http://127.0.0.1:8080", to)
	}
	path := strings.TrimSuffix(u.Path, "/")
	if !strings.HasSuffix(path, "/api/v1") {
		path += "/api/v1"
	}
	return u.Scheme + "://" + u.Host + path, nil
}

func (p *process) importFile(ctx context.Context, target importer.Target, c *importConfig, format importer.Format, name string) (importer.Summary, error) {
	stopped := func(err error) error {
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("stopped; import %s again and it continues where it stopped", name)
		}
		return err
	}
	src, err := importer.Open(ctx, name, p.stdin, os.TempDir())
	if err != nil {
		return importer.Summary{}, stopped(err)
	}
	defer src.Close()
	src.CSV = c.columns
	r := &progress{out: p.stderr, name: name, remote: c.to != "", size: src.Bytes, began: time.Now()}
	r.last = r.began
	sum, err := importer.Run(ctx, src, format, target, r.update)
	if err == nil || sum.Rows > 0 {
		r.end(sum)
	}
	return sum, stopped(err)
}

// progress writes the progress of an import.
type progress struct {
	out    io.Writer
	name   string
	remote bool // the rows go to a server
	size   int64
	began  time.Time
	last   time.Time
	rows   uint64 // at last
}

// progressEvery is the pause between lines of progress.
const progressEvery = 2 * time.Second

func (p *progress) update(s importer.Summary) {
	now := time.Now()
	if now.Sub(p.last) < progressEvery {
		return
	}
	fmt.Fprintf(p.out, "%s: %d rows, %.0f %%, %.0f rows/s\n", p.name, s.Rows, 100*float64(s.BytesRead)/float64(max(p.size, 1)),
		float64(s.Rows-max(p.rows, s.Skipped))/now.Sub(p.last).Seconds())
	p.last, p.rows = now, s.Rows
}

func (p *progress) end(s importer.Summary) {
	took := time.Since(p.began)
	// A server answers a repeated idempotency key like a new event.
	duplicates := fmt.Sprintf("%d duplicates", s.Duplicates)
	if p.remote {
		duplicates = "duplicates among them"
	}
	fmt.Fprintf(p.out, "%s: %d rows: %d stored before, %d accepted, %s, %d refused; %.1f s, %.0f rows/s\n",
		p.name, s.Rows, s.Skipped, s.Accepted, duplicates, s.RefusedRows, took.Seconds(), float64(s.Rows-s.Skipped)/took.Seconds())
	for _, r := range s.Refused {
		fmt.Fprintf(p.out, "%s:%d: %s\n", p.name, r.Line, r.Reason)
	}
	if more := s.RefusedRows - uint64(len(s.Refused)); more > 0 {
		fmt.Fprintf(p.out, "%s: and %d more refused rows\n", p.name, more)
	}
}
