package doctor

import (
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func TestOlderThan(t *testing.T) {
	for _, test := range []struct {
		kind, version string
		want          bool
	}{
		{"postgres", "PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu", false},
		{"postgres", "PostgreSQL 9.6.24 on x86_64-pc-linux-gnu", true},
		{"postgres", "PostgreSQL 10.1", false},
		{"mysql", "8.0.43", false},
		{"mysql", "5.7.44-log", true},
		{"mysql", "10.11.14-MariaDB-0+deb12u2", false},
		{"mysql", "10.5.29-MariaDB", true},
		{"sqlite", "SQLite 3.53.4", false},
		{"sqlite", "SQLite 3.41.2", true},
		{"postgres", "something else", false},
	} {
		_, oldest := serverOf(test.kind, test.version)
		if got := olderThan(test.version, oldest); got != test.want {
			t.Errorf("olderThan(%q, %q) = %v, want %v", test.version, oldest, got, test.want)
		}
	}
	if name, _ := serverOf(dialect.Postgres().Name, "PostgreSQL 15.14 (Debian) on x86_64"); name != "PostgreSQL 15.14 (Debian)" {
		t.Errorf("name %q", name)
	}
}
