package durable

import (
	"context"
	"database/sql"
	"net"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver for MariaDB
	_ "github.com/lib/pq"              // the driver for PostgreSQL
)

var drivers = map[string]string{Postgres: "postgres", MariaDB: "mysql"}

// Version returns the version that the server reports.
func (s *Server) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	driver, ok := drivers[s.Kind]
	if !ok {
		return s.redisVersion(ctx)
	}
	db, err := sql.Open(driver, s.DSN(s.Address()))
	if err != nil {
		return "", err
	}
	defer db.Close() //nolint:errcheck // it was only read from
	var version string
	err = db.QueryRowContext(ctx, "SELECT version()").Scan(&version)
	return version, err
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
	db, err := sql.Open(drivers[s.Kind], s.DSN(s.Address()))
	if err != nil {
		return "", err
	}
	defer db.Close() //nolint:errcheck // it was only read from
	var answer string
	err = db.QueryRowContext(ctx, question).Scan(&answer)
	return answer, err
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
