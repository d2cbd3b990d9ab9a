package pgxdriver

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// The fallbacks to a connection without TLS are no other hosts.
func TestHosts(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]int{
		"host=a user=u dbname=d sslmode=prefer":              1,
		"postgres://u@a:5432,b:5432,c:5432/d":                3,
		"postgres://u@a:5432,a:5433/d?sslmode=disable":       2,
		"postgres://u@a/d?connect_timeout=3&sslmode=disable": 1,
	} {
		config := check.Value(pgx.ParseConfig(dsn))(t)
		check.Equal(t, dsn, hosts(config), want)
	}
}

// TestParseShowsNoKey has DSNs of lib/pq, whose files' names are keys.
func TestParseShowsNoKey(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://u@h/db?sslinline=true&sslcert=CERT&sslkey=SECRET", "host=h sslinline=true sslcert=CERT sslkey=SECRET",
	} {
		_, err := Parse(dsn)
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
