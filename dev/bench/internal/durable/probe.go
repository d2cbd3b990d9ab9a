package durable

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver for MariaDB and MySQL
	_ "github.com/lib/pq"              // the driver for PostgreSQL

	"github.com/sqllock/sqllock/internal/test/proc"
)

var drivers = map[string]string{Postgres: "postgres", MariaDB: "mysql", OracleMySQL: "mysql"}

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
	switch s.Kind {
	case Postgres, MariaDB, OracleMySQL:
		return s.answer(ctx, "SELECT version()")
	case Etcd:
		return s.said(ctx, "GET /version HTTP/1.0\r\n\r\n", `"etcdserver":"`, `"`)
	default:
		return s.said(ctx, "INFO server\r\n", "redis_version:", "\r")
	}
}

var durability = map[string]string{
	Postgres: `SELECT string_agg(name || ' = ' || setting, ', ' ORDER BY name) FROM pg_settings
		WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method')`,
	MariaDB: `SELECT CONCAT('innodb_flush_log_at_trx_commit = ', @@innodb_flush_log_at_trx_commit,
		', innodb_doublewrite = ', @@innodb_doublewrite, ', log_bin = ', @@log_bin)`,
	OracleMySQL: `SELECT CONCAT('innodb_flush_log_at_trx_commit = ', @@innodb_flush_log_at_trx_commit,
		', innodb_doublewrite = ', @@innodb_doublewrite, ', log_bin = ', @@log_bin, ', sync_binlog = ', @@sync_binlog)`,
}

// Durability returns the server's settings for durability, or "".
func (s *Server) Durability(ctx context.Context) (string, error) {
	question, ok := durability[s.Kind]
	if !ok {
		return "", nil
	}
	return s.answer(ctx, question)
}

// said asks without a driver, and returns what stands between two texts of the answer.
func (s *Server) said(ctx context.Context, question, before, after string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing is written any more
	if _, err := conn.Write([]byte(question)); err != nil {
		return "", err
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	_, version, _ := strings.Cut(string(answer[:n]), before)
	version, _, _ = strings.Cut(version, after)
	return s.Kind + " " + version, err
}

// tick is the unit of times in /proc on Linux.
const tick = 10 * time.Millisecond

// CPU returns the processor time that the server's processes have used, those
// that have ended included.
func (s *Server) CPU() time.Duration {
	var total time.Duration
	for _, pid := range s.Processes() {
		total += spent(pid)
	}
	return total
}

// spent is the time of a process and of its children that it has waited for.
func spent(pid int) time.Duration {
	_, fields := proc.Status(pid)
	const utime, cstime = 11, 14
	if len(fields) <= cstime {
		return 0 // it has ended
	}
	var ticks int64
	for _, field := range fields[utime : cstime+1] {
		n, _ := strconv.ParseInt(field, 10, 64) // the kernel writes numbers
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// LogLines returns how many lines the server has written to its log.
func (s *Server) LogLines() int {
	text, _ := os.ReadFile(s.Log()) // no log has no lines
	return bytes.Count(text, []byte("\n"))
}
