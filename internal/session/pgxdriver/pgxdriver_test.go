package pgxdriver

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// The fallbacks to a connection without TLS are no other hosts.
func TestHasSeveralHosts(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]bool{
		"host=a user=u dbname=d sslmode=prefer":              false,
		"postgres://u@a:5432,b:5432/d":                       true,
		"postgres://u@a:5432,a:5433/d?sslmode=disable":       true,
		"postgres://u@a/d?connect_timeout=3&sslmode=disable": false,
	} {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if got := hasSeveralHosts(config); got != want {
			t.Errorf("%s: %t", dsn, got)
		}
	}
}
