package durable

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver for MariaDB
	_ "github.com/lib/pq"              // the driver for PostgreSQL
)

var drivers = map[string]string{Postgres: "postgres", MariaDB: "mysql"}

// Ask opens a connection for the benchmark itself. A server without SQL is not asked.
func (s *Server) Ask(question func(*sql.DB) error) error {
	driver, ok := drivers[s.Kind]
	if !ok {
		return nil
	}
	db, err := sql.Open(driver, s.DSN(s.Address()))
	if err != nil {
		return err
	}
	return errors.Join(question(db), db.Close())
}

func (s *Server) answer(ctx context.Context, query string) (answer string, err error) {
	err = s.Ask(func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(&answer) })
	return answer, err
}

// Version returns the version that the server reports.
func (s *Server) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if drivers[s.Kind] == "" {
		return s.redisVersion(ctx)
	}
	return s.answer(ctx, "SELECT version()")
}

var durability = map[string]string{
	Postgres: `SELECT string_agg(name || ' = ' || setting, ', ' ORDER BY name) FROM pg_settings
		WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method')`,
	MariaDB: `SELECT CONCAT('innodb_flush_log_at_trx_commit = ', @@innodb_flush_log_at_trx_commit,
		', innodb_doublewrite = ', @@innodb_doublewrite, ', log_bin = ', @@log_bin)`,
}

// Durability returns the server's settings for durability, or "".
func (s *Server) Durability(ctx context.Context) (string, error) {
	question, ok := durability[s.Kind]
	if !ok {
		return "", nil
	}
	return s.answer(ctx, question)
}

// redisVersion uses Redis's protocol without a driver.
func (s *Server) redisVersion(ctx context.Context) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing is written any more
	if _, err := conn.Write([]byte("INFO server\r\n")); err != nil {
		return "", err
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	_, version, _ := strings.Cut(string(answer[:n]), "redis_version:")
	version, _, _ = strings.Cut(version, "\r")
	return "Redis " + version, err
}
