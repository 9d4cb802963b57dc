package services

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ClickHouseServer is a ClickHouse of this process's own. Port and data stay
// the same across restarts.
type ClickHouseServer struct {
	*process
	addr string
}

// StartClickHouse starts a server that keeps its data below dir, and returns
// when it serves. The caller ends it with Close; it ends with the process at
// the latest. The error wraps [ErrMissing] when ClickHouse is not installed.
func StartClickHouse(ctx context.Context, dir string) (*ClickHouseServer, error) {
	in, err := newInstaller(false, nil)
	if err != nil {
		return nil, err
	}
	s, err := newClickHouse(ctx, in, dir, ownLimits, false)
	if err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	if err := s.waitServing(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newClickHouse writes the configuration; nothing runs yet.
func newClickHouse(ctx context.Context, in *installer, dir string, lim limits, detach bool) (*ClickHouseServer, error) {
	launcher, lib, err := in.chdb(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(dir, "clickhouse")
	conf, err := writeIn(home, "config.xml", clickHouseConfig(lim))
	if err != nil {
		return nil, err
	}
	return &ClickHouseServer{
		addr: loopback(ports[0]),
		process: &process{
			name: "ClickHouse", dir: home, logPath: filepath.Join(home, "log"), detach: detach,
			argv: []string{
				launcher, lib, "--config-file=" + conf, "--path=" + filepath.Join(home, "data"),
				"--listen_host=127.0.0.1", fmt.Sprintf("--tcp_port=%d", ports[0]),
				// These differ between clickhouse-local and a server.
				"--implicit_select=0", "--allow_introspection_functions=0", "--storage_file_read_method=pread",
				// launcher.c says why.
				"--interactive",
				// It serves as long as its own query runs.
				"--query=SYSTEM START LISTEN TCP; SELECT sleep(3) FROM system.numbers SETTINGS max_block_size = 1 FORMAT Null",
			},
		},
	}, nil
}

func clickHouseConfig(lim limits) string {
	return fmt.Sprintf(`<clickhouse>
  <logger><level>warning</level><console>1</console><console_log_level>warning</console_log_level></logger>
  <max_server_memory_usage>%d</max_server_memory_usage>
  <mark_cache_size>67108864</mark_cache_size>
  <index_mark_cache_size>16777216</index_mark_cache_size>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <index_uncompressed_cache_size>0</index_uncompressed_cache_size>
  <mmap_cache_size>16</mmap_cache_size>
  <compiled_expression_cache_size>16777216</compiled_expression_cache_size>
</clickhouse>
`, lim.memory<<20)
}

// Addr returns the address of the native protocol, HOST:PORT.
func (s *ClickHouseServer) Addr() string { return s.addr }

// DSN returns the address in the form that clickhouse-go and muster read. The
// user is default, without a password.
func (s *ClickHouseServer) DSN() string { return "clickhouse://" + s.addr + "/default" }

// PID returns the process id of the server's present life.
func (s *ClickHouseServer) PID() int { return s.pid() }

// Kill ends the server with SIGKILL, and returns when it is gone.
func (s *ClickHouseServer) Kill() error { return s.kill() }

// Freeze stops the server's time with SIGSTOP: connections stay, nothing is
// answered.
func (s *ClickHouseServer) Freeze() error { return s.freeze() }

// Thaw ends Freeze.
func (s *ClickHouseServer) Thaw() error { return s.thaw() }

// Restart starts the server again, on the same data, after it was killed, and
// kills it first when it runs. It returns when the server serves.
func (s *ClickHouseServer) Restart(ctx context.Context) error {
	if err := s.kill(); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	return s.waitServing(ctx)
}

// Close kills the server. It may be called more than once.
func (s *ClickHouseServer) Close() error { return s.kill() }

func (s *ClickHouseServer) waitServing(ctx context.Context) error {
	return waitReady(ctx, s.process, func(ctx context.Context) error {
		return withClickHouse(ctx, s.DSN(), func(db *sql.DB) error { return db.PingContext(ctx) })
	})
}

// withClickHouse runs do with a connection of its own. A server that other tests keep busy
// may be long silent: it is waited for as long as ctx lasts.
func withClickHouse(ctx context.Context, dsn string, do func(*sql.DB) error) error {
	opt, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		return fmt.Errorf("DSN of ClickHouse: %w", err)
	}
	patience := readyTimeout
	if deadline, ok := ctx.Deadline(); ok {
		patience = max(time.Until(deadline), time.Millisecond)
	}
	opt.DialTimeout, opt.ReadTimeout = patience, patience
	db := clickhouse.OpenDB(opt)
	return errors.Join(do(db), db.Close())
}

// dropDatabases deletes the databases whose names begin with prefix.
func dropDatabases(ctx context.Context, dsn, prefix string) error {
	return withClickHouse(ctx, dsn, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT name FROM system.databases WHERE startsWith(name, ?)", prefix)
		if err != nil {
			return err
		}
		defer rows.Close()
		var names []string
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			names = append(names, name)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, name := range names {
			if _, err := db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+quote(name)+" SYNC"); err != nil {
				return err
			}
		}
		return nil
	})
}

func quote(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}
