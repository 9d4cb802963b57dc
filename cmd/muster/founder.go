package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
)

// directoryPartition is where the first company is made, by its owner.
const directoryPartition = 0

// foundPause is between two tries to find out whether there is a company.
const foundPause = time.Second

// founder makes the first company, if there is none.
type founder struct {
	p      *process
	c      *serveConfig
	eng    *engine.Engine
	origin string
	// exists asks all nodes.
	exists func(ctx context.Context) (bool, error)
	// has asks all nodes for an account.
	has func(ctx context.Context, account uint64) (bool, error)
}

// awaitCompany returns once there is a company, made here or elsewhere. It is for
// several nodes: the owner of the directory makes it when it finds none.
func (f *founder) awaitCompany(ctx context.Context) error {
	logged, marked := false, false
	for {
		changed := f.eng.Node.Changed()
		if f.eng.Node.Owns(directoryPartition) {
			err := f.found(ctx)
			switch {
			case err == nil:
				return nil
			case !errors.Is(err, resolver.ErrNotOwner) && !errors.Is(err, resolver.ErrUnavailable):
				return err
			case !logged:
				f.c.log.Info("waiting for the other nodes: whether there is a company is not known yet", "err", err)
				logged = true
			}
			changed = nil
		} else if !marked {
			marked, _ = f.mark(ctx) // without an answer it is asked again
		}
		t := time.NewTimer(foundPause)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
		t.Stop()
	}
}

// found makes the first company unless there is one. It is made in a log without one only.
func (f *founder) found(ctx context.Context) error {
	switch there, err := f.exists(ctx); {
	case err != nil:
		return err
	case there:
		if _, err := f.mark(ctx); err != nil {
			f.c.log.Warn("whether the company of the credentials file is made is not known; the next start asks again", "file", f.c.credentials, "err", err)
		}
		return nil
	}
	if err := f.checkEmpty(ctx); err != nil {
		return f.unlessThere(ctx, err)
	}
	return f.make(ctx)
}

// unlessThere returns why no company may be made, unless another node has made it since.
func (f *founder) unlessThere(ctx context.Context, reason error) error {
	if there, err := f.exists(ctx); err != nil || there {
		return err
	}
	return reason
}

// make makes the first company. Its credentials are printed, and written to the file, before
// the record that makes it: a crash between leaves credentials without a company, never a
// company without credentials. The next start then makes the company of the file.
func (f *founder) make(ctx context.Context) error {
	creds, ours, err := f.credentials()
	if err != nil {
		return err
	}
	if creds.CompanyMade {
		return f.unlessThere(ctx, f.c.companyElsewhere(&creds))
	}
	fmt.Fprintln(f.p.stdout, "A new company. These are its credentials; they are not shown again:")
	if err := creds.Print(f.p.stdout); err != nil {
		return fmt.Errorf("print the credentials: %w", err)
	}
	err = creds.Bootstrap(ctx, f.eng.Node, rand.Reader)
	var refused *resolver.Refusal
	switch {
	case err == nil:
		f.made(ctx, &creds)
		return nil
	case !errors.As(err, &refused) || refused.Code != "conflict":
		return err
	}
	// The first record wins: another node was the owner before. It may have made
	// this very company, where nodes share the file.
	if _, same := f.eng.Node.App([]byte(creds.AppID)); same {
		f.note(&creds)
		return nil
	}
	fmt.Fprintln(f.p.stdout, "Another node has made a company before. These credentials are void:", creds.AccountID)
	if ours {
		return f.withdraw(creds)
	}
	return nil
}

// made notes that the company is made: a start that finds neither it nor its log is refused
// from now on.
func (f *founder) made(ctx context.Context, creds *api.Credentials) {
	f.c.founded = creds
	if err := f.eng.NoteLogEnds(); err != nil {
		f.c.log.Warn("how far the log goes could not be noted; the next checkpoint tries again", "err", err)
	}
	f.printSignInLink(ctx, creds)
	f.note(creds)
}

// mark notes in the credentials file that its company is made, if that is there: files of
// older builds lack that, and those of starts that were killed before they noted it. done
// reports that there is nothing more to find out.
func (f *founder) mark(ctx context.Context) (done bool, err error) {
	if f.c.credentials == "" {
		return true, nil
	}
	creds, err := api.LoadCredentials(f.c.credentials)
	if err != nil || creds.CompanyMade {
		return true, nil //nolint:nilerr // a file of other content is left alone where it is not needed
	}
	account, err := creds.Account()
	if err != nil {
		return false, err
	}
	there, err := f.has(ctx, account)
	switch {
	case err != nil:
		return false, err
	case !there:
		return f.exists(ctx) // it is void beside another company, or not made yet
	}
	f.note(&creds)
	return true, nil
}

// note writes to the credentials file that its company is made.
func (f *founder) note(creds *api.Credentials) {
	if f.c.credentials == "" {
		return
	}
	creds.CompanyMade = true
	if err := creds.SaveAgain(f.c.credentials); err != nil {
		f.c.log.Warn("that the company is made could not be noted: should its data be missing at a start, the credentials file makes an empty one", "file", f.c.credentials, "err", err)
	}
}

// printSignInLink prints a link that opens the console and signs its first user in. The
// company is made and its credentials are printed: without a link one signs in by them.
func (f *founder) printSignInLink(ctx context.Context, creds *api.Credentials) {
	link, err := creds.SignInLink(ctx, f.eng.Node, rand.Reader, time.Now())
	if err != nil {
		f.c.log.Warn("no sign-in link could be made; sign in with the e-mail and password of the credentials", "err", err)
		return
	}
	fmt.Fprintln(f.p.stdout, "Open the console; this link signs you in once, within an hour:")
	fmt.Fprintln(f.p.stdout, link)
}

// checkCredentials refuses a credentials file that could not be read or written for a
// new directory, before the directory is made.
func (c *serveConfig) checkCredentials() error {
	if c.credentials == "" || c.engine.Kafka != nil {
		return nil // or another node may have made the company
	}
	if _, err := os.Stat(filepath.Join(c.engine.Dir, "log")); !errors.Is(err, os.ErrNotExist) {
		return nil // there is a company, or whatever is wrong is said later
	}
	switch creds, err := api.LoadCredentials(c.credentials); {
	case err == nil && creds.CompanyMade && c.nothingThere():
		return c.companyElsewhere(&creds)
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.ENOTDIR):
		return badCredentials(err)
	}
	if filepath.Clean(filepath.Dir(c.credentials)) == filepath.Clean(c.engine.Dir) {
		return nil // the start makes it
	}
	return checkFileToMake("credentials", c.credentials, c.engine.Dir)
}

// nothingThere reports whether the data directory is not there or empty. What else it may
// have is judged when it is opened.
func (c *serveConfig) nothingThere() bool {
	entries, err := os.ReadDir(c.engine.Dir)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != "LOCK" && e.Name() != "lost+found" })
}

// companyElsewhere refuses to make a company a second time: its data is somewhere else,
// such as on a disk that is not mounted, and clients would fill an empty one unawares.
func (c *serveConfig) companyElsewhere(creds *api.Credentials) error {
	if c.engine.Kafka != nil {
		return fmt.Errorf("--credentials: %s is of the company of %s, which was made before, and the topic %s has no record of it. Name the topic and the database that have its events with --kafka, --kafka-topic and --clickhouse; for a new company move the file away",
			c.credentials, creds.AccountID, c.engine.Kafka.Topic)
	}
	return fmt.Errorf("--credentials: %s is of the company of %s, which was made before, and %s does not have it. Mount the disk that has its data, name its directory with --data, or restore a backup; for a new company move the file away",
		c.credentials, creds.AccountID, c.engine.Dir)
}

func badCredentials(err error) error {
	return fmt.Errorf("--credentials: %w. It is left as it is; name another file, or move it away", err)
}

// checkEmpty refuses to make a company beside existing data: the log may hold no
// record of an account.
func (f *founder) checkEmpty(ctx context.Context) error {
	start, end, err := f.eng.Log.Bounds(ctx, directoryPartition)
	if err != nil {
		return err
	}
	r, err := f.eng.Log.Read(directoryPartition, start)
	if err != nil {
		return err
	}
	defer r.Close()
	for at := start; at < end; at++ {
		e, err := r.Next(ctx)
		if err != nil {
			return err
		}
		if env, _, err := eventlog.DecodeEnvelope(e.Data); err == nil && env.Account != 0 {
			if k := f.c.engine.Kafka; k != nil {
				return fmt.Errorf("%w: the topic %s has some of an account (the first at %d) and lacks those that made its company: it lost its beginning, or was made anew while nodes wrote to it. Restore the topic, or name another one with --kafka-topic", errLogNotEmpty, k.Topic, e.Offset)
			}
			return fmt.Errorf("%w: the log of %s has some of an account (the first at %d), but the state knows no company. Run muster check --data %[2]s, or restore a backup", errLogNotEmpty, f.c.engine.Dir, e.Offset)
		}
	}
	return nil
}

// errLogNotEmpty means that no company may be made.
var errLogNotEmpty = errors.New("no company is made beside records of one")

// credentials are those of the file, or new ones, which are written to it; ours
// tells which.
func (f *founder) credentials() (creds api.Credentials, ours bool, err error) {
	file, partitions := f.c.credentials, f.eng.Node.Partitions()
	creds, err = api.LoadCredentials(file)
	switch {
	case file != "" && err == nil:
		account, ok := resolver.ParseAppID([]byte(creds.AppID))
		if !ok || f.eng.Node.PartitionOf(account) != directoryPartition {
			return creds, false, fmt.Errorf("--credentials: %s names a company that cannot be the first one of a log with %d partitions. It is left as it is; name another file, or move it away", file, partitions)
		}
		f.c.log.Info("there is no company; making that of the credentials file", "file", file)
		creds.SetOrigin(f.origin)
	case file == "" || errors.Is(err, os.ErrNotExist):
		if creds, err = api.NewFirstCredentials(rand.Reader, f.origin, partitions); err != nil {
			return creds, false, err
		}
		ours = true
	default:
		return creds, false, badCredentials(err)
	}
	if file != "" && !creds.CompanyMade {
		err = creds.Save(file)
	}
	return creds, ours, err
}

// withdraw removes the file with credentials that are void, unless another node
// has written its own to it meanwhile.
func (f *founder) withdraw(creds api.Credentials) error {
	if f.c.credentials == "" {
		return nil
	}
	have, err := api.LoadCredentials(f.c.credentials)
	if errors.Is(err, os.ErrNotExist) || err == nil && have.AccountID != creds.AccountID {
		return nil
	}
	if err == nil {
		err = os.Remove(f.c.credentials)
	}
	if err != nil {
		return fmt.Errorf("remove void credentials: %w", err)
	}
	return nil
}
