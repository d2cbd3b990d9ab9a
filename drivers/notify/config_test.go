package notify

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestParseParametersOfPq has parameters that lib/pq alone knows.
func TestParseParametersOfPq(t *testing.T) {
	t.Parallel()
	config := check.Value(parse("host=a,b user=u sslmode=require load_balance_hosts=random ssl_min_protocol_version=TLSv1.2 ssl_max_protocol_version=TLSv1.3"))(t)
	check.Equal(t, "parameters of the session", len(config.RuntimeParams), 1) // application_name
	for _, c := range []*tls.Config{config.TLSConfig, config.Fallbacks[0].TLSConfig} {
		check.Equal(t, "the lowest version", c.MinVersion, tls.VersionTLS12)
		check.Equal(t, "the highest version", c.MaxVersion, tls.VersionTLS13)
	}
}

// TestParseShowsNoSecret has DSNs that pgx cannot parse. In one of them the names of files are keys.
func TestParseShowsNoSecret(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://u:SECRET@h/db?sslinline=true&sslmode=require&sslcert=CERT&sslkey=SECRET",
		"postgres://u:SECRET@h/db?sslmode=wrong&sslpassword=SECRET",
		"postgres://u@h:SECRET/db",
	} {
		_, err := parse(dsn)
		if !errors.Is(err, sqllock.ErrInvalid) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}
