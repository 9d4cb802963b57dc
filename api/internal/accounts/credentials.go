package accounts

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/internal/password"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/node"
)

// Credentials are those of a new company, shown once: only hashes are kept.
type Credentials struct {
	BaseURL         string `json:"base_url"`    // of Surfaces A and B
	BaseURLV1       string `json:"base_url_v1"` // of Surface C
	ConsoleURL      string `json:"console_url"`
	AccountID       string `json:"account_id"`
	AppID           string `json:"app_id"`
	AppSecret       string `json:"app_secret"`
	APIKey          string `json:"api_key"`
	ConsoleEmail    string `json:"console_email"`
	ConsolePassword string `json:"console_password"`
	// CompanyMade reports that the log has the company: one that lacks it is not its log.
	CompanyMade bool `json:"company_made,omitempty"`
}

// NewAPIKey draws a key of an account: the prefix, then the number of the account and
// random bytes.
func NewAPIKey(rand io.Reader, account uint64) (string, error) {
	b := make([]byte, 8+tokens.SecretRandom)
	binary.BigEndian.PutUint64(b, account)
	if _, err := io.ReadFull(rand, b[8:]); err != nil {
		return "", fmt.Errorf("source of randomness: %w", err)
	}
	return resolver.APIKeyPrefix + base64.RawURLEncoding.EncodeToString(b), nil
}

// ParseAPIKey reads the number of the account out of a key.
func ParseAPIKey(key string) (account uint64, ok bool) {
	text, ok := strings.CutPrefix(key, resolver.APIKeyPrefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(8+tokens.SecretRandom) {
		return 0, false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

// NewCredentials draws the credentials of a new company. origin is where its
// service is reached, such as http://127.0.0.1:8080.
func NewCredentials(rand io.Reader, origin string) (Credentials, error) {
	account, err := drawAccount(rand)
	if err != nil {
		return Credentials{}, err
	}
	return newCredentials(rand, origin, account)
}

// NewFirstCredentials draws those of the first company, whose account is of the
// first of the log's partitions.
func NewFirstCredentials(rand io.Reader, origin string, partitions int) (Credentials, error) {
	account, err := drawAccount(rand)
	if err != nil {
		return Credentials{}, err
	}
	n := uint64(partitions)
	return newCredentials(rand, origin, max(n, account-account%n))
}

// drawAccount draws a number of 63 bits, so that it fits signed integers; 0 is no
// account.
func drawAccount(rand io.Reader) (uint64, error) {
	var number [8]byte
	if _, err := io.ReadFull(rand, number[:]); err != nil {
		return 0, fmt.Errorf("source of randomness: %w", err)
	}
	return max(1, binary.LittleEndian.Uint64(number[:])>>1), nil
}

func newCredentials(rand io.Reader, origin string, account uint64) (Credentials, error) {
	c := Credentials{
		AccountID: resolver.AccountID(account), AppID: resolver.AppID(account),
	}
	var err error
	if c.ConsoleEmail, err = newConsoleEmail(rand); err != nil {
		return Credentials{}, err
	}
	if c.APIKey, err = NewAPIKey(rand, account); err != nil {
		return Credentials{}, err
	}
	for _, x := range []struct {
		dst    *string
		prefix string
		bytes  int
	}{{&c.AppSecret, tokens.SecretPrefix, tokens.SecretRandom}, {&c.ConsolePassword, "", 18}} {
		if *x.dst, err = tokens.Random(rand, x.prefix, x.bytes); err != nil {
			return Credentials{}, err
		}
	}
	c.SetOrigin(origin)
	return c, nil
}

// newConsoleEmail draws the name that the first person of a company signs in with,
// so that an attacker cannot guess whose password to try.
func newConsoleEmail(rand io.Reader) (string, error) {
	var b [10]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return "", fmt.Errorf("source of randomness: %w", err)
	}
	return "owner-" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:])) + "@muster.local", nil
}

// SetOrigin says where the service is reached.
func (c *Credentials) SetOrigin(origin string) {
	c.BaseURL, c.BaseURLV1, c.ConsoleURL = origin+"/api/v1", origin+"/v1", origin+"/console"
}

// Account is the number of the account. The error says which part is wrong.
func (c *Credentials) Account() (uint64, error) {
	n, ok := resolver.ParseAppID([]byte(c.AppID))
	switch {
	case !ok || n == 0 || c.AccountID != resolver.AccountID(n):
		return 0, errors.New("app_id and account_id do not belong together")
	case !strings.HasPrefix(c.AppSecret, tokens.SecretPrefix) || len(c.AppSecret) < len(tokens.SecretPrefix)+27:
		return 0, errors.New("app_secret is not one of ours")
	case !isKeyOf(c.APIKey, n):
		return 0, errors.New("api_key is not one of this account")
	case c.ConsoleEmail == "" || len(c.ConsolePassword) < 16:
		return 0, errors.New("console_email or console_password is missing or too short")
	}
	return n, nil
}

func isKeyOf(key string, account uint64) bool {
	n, ok := ParseAPIKey(key)
	return ok && n == account
}

// Bootstrap makes the company with these credentials in an empty state.
func (c *Credentials) Bootstrap(ctx context.Context, node *node.Node, rand io.Reader) error {
	return c.open(ctx, node, rand, resolver.CommandBootstrap, "My company", nil, password.Default)
}

// open makes the company with these credentials by a command. Without emailCredits
// it has the usual number.
func (c *Credentials) open(ctx context.Context, node *node.Node, rand io.Reader, command, name string, emailCredits *int64, cost password.Params) error {
	account, err := c.Account()
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	var draw struct{ Company, User, Key, Hash [16]byte }
	if err := binary.Read(rand, binary.LittleEndian, &draw); err != nil {
		return fmt.Errorf("source of randomness: %w", err)
	}
	hash, err := password.Hash(rand, c.ConsolePassword, cost)
	if err != nil {
		return err
	}
	_, err = node.Command(ctx, account, command, resolver.Bootstrap{
		ApplyVersion: resolver.ApplyVersion,
		Company:      resolver.Company{ID: "com_" + hex.EncodeToString(draw.Company[:]), Name: name},
		HashKey:      hex.EncodeToString(draw.Hash[:]),
		SecretHash:   tokens.Hash(c.AppSecret),
		Settings:     resolver.DefaultSettings(),
		User: access.User{
			ID: "usr_" + hex.EncodeToString(draw.User[:]), Email: c.ConsoleEmail, PasswordHash: hash,
			Permissions: operation.UserPermissions(),
		},
		APIKey: access.APIKey{
			ID: "key_" + hex.EncodeToString(draw.Key[:]), Name: "first key", Hash: tokens.Hash(c.APIKey), Permissions: operation.KeyPermissions(),
		},
		EmailCredits: emailCredits,
	})
	if err != nil {
		return fmt.Errorf("make the account: %w", err)
	}
	return nil
}

// LoadCredentials reads credentials that [Credentials.Save] wrote. The error
// wraps [os.ErrNotExist] when there is no such file.
func LoadCredentials(path string) (Credentials, error) {
	var c Credentials
	b, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("%s does not hold credentials: %w", path, err)
	}
	if _, err := c.Account(); err != nil {
		return c, fmt.Errorf("%s does not hold credentials: %w", path, err)
	}
	return c, nil
}

// Save writes the credentials to a file that only its owner can read. The file
// is whole and durable when Save returns, or as it was before.
func (c *Credentials) Save(path string) error {
	return c.save(path, func(*os.File) error { return nil })
}

// SaveAgain is Save for a file that people may have given to others since: it keeps its owner
// and its mode, and a link to it stays one.
func (c *Credentials) SaveAgain(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	have, err := os.Stat(path)
	if err != nil {
		return err
	}
	return c.save(path, func(f *os.File) error {
		return errors.Join(keepOwner(f, have), f.Chmod(have.Mode().Perm())) // in this order: chown may clear bits
	})
}

func (c *Credentials) save(path string, prepare func(*os.File) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write credentials to %s: %w", path, err)
		}
	}()
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	b, err := c.text()
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = prepare(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Print writes the credentials for a person to read.
func (c *Credentials) Print(w io.Writer) error {
	b, err := c.text()
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

func (c *Credentials) text() ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(c)
	return buf.Bytes(), err
}
