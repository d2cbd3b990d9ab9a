package probe

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

// Rows are parked only where a server of the right version has said what the table is.
func TestParking(t *testing.T) {
	t.Parallel()
	d := sqltext.Postgres().WithoutScans()
	for server, parks := range map[string]bool{
		"PostgreSQL 9.6.24 on x86_64": false, "PostgreSQL 11.22 (Debian 11.22-1)": false, "PostgreSQL 11.2-YB-2024": false,
		"PostgreSQL 12.0 on x86_64": true, "PostgreSQL 15.4 on aarch64": true, "PostgreSQL 19beta1 on x86_64": true, "PostgreSQL 20devel": true, "": false,
	} {
		for _, partitioned := range []bool{false, true} {
			got := finding{server: server, layout: dialect.Spring7, partitioned: partitioned}.facts(d)
			check.Equal(t, server, got.Dialect.Parks(), parks && !partitioned)
			check.Equal(t, server, got.Anywhere.Parks(), parks && !partitioned)
		}
	}
	check.Equal(t, "if nothing is asked", Given(d, dialect.Spring7).Dialect.Parks(), false)
	names := check.Value(sqltext.NamesFor(""))(t)
	without := d.WithoutParking().Statements(dialect.Spring7, names)
	check.Equal(t, "the read is from the end of the index", strings.Contains(without.Peek+without.PeekAll+without.RenewAll, "DESC"), false)
	check.Equal(t, "what takes a parked row", without.Take+without.TakeAll+without.ParkAll, "")
}
