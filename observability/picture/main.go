// Command picture draws the dashboard, grafana.json, over data that are real: three processes work
// under locks of one PostgreSQL for some minutes, and meet with troubles. Their metrics are scraped,
// and the engine of Prometheus evaluates the expressions of the panels.
//
// make picture-observability runs it, with a server. SQLLOCK_TEST_POSTGRES is its DSN.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/observability/dashboard"
)

func main() {
	out := flag.String("out", "", "the file to write, an SVG")
	lasting := flag.Duration("for", 5*time.Minute, "how long the processes work; two minutes at least, for leases to expire")
	interval := flag.Duration("interval", 2*time.Second, "how often they are scraped")
	flag.Parse()
	if err := run(context.Background(), *out, os.Getenv("SQLLOCK_TEST_POSTGRES"), *lasting, *interval); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out, dsn string, lasting, interval time.Duration) error {
	if out == "" || dsn == "" {
		return errors.New("-out and SQLLOCK_TEST_POSTGRES are needed")
	}
	board, err := dashboard.Read("grafana.json")
	if err != nil {
		return err
	}
	if err := migrate(ctx, dsn); err != nil {
		return err
	}
	s, err := work(ctx, func(string) (database, error) {
		return database{flaky.New(stdlib.GetDefaultDriver(), dsn), dialect.Postgres()}, nil
	}, lasting, interval)
	if err != nil {
		return err
	}
	panels, err := evaluate(ctx, board, s)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("sqllock: three processes on PostgreSQL, %v minutes", lasting.Minutes())
	return os.WriteFile(out, draw(panels, s, title), 0o644) //nolint:gosec // it is to be read by all
}

// migrate makes the tables.
func migrate(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	return errors.Join(migrations.Up(ctx, db, dialect.Postgres(), nil), db.Close())
}
