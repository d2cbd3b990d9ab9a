package doctor

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

func (e *examination) checkServer(ctx context.Context) []finding {
	var version string
	if err := e.DB.GetContext(ctx, &version, e.statements.Version); err != nil {
		return []finding{{noteworthy, "server", "its version is not known: " + exit.Text(err), "check that it is PostgreSQL, MySQL, MariaDB or SQLite"}}
	}
	name, oldest := serverOf(e.Dialect.Name, version)
	if olderThan(version, oldest) {
		return []finding{{noteworthy, "server", name, "sqllock supports version " + oldest + " and later: upgrade the server"}}
	}
	return []finding{{good, "server", name, ""}}
}

// serverOf returns the name of a server, and the oldest version that sqllock supports.
func serverOf(kind, version string) (name, oldest string) {
	switch {
	case kind == "postgres":
		name, _, _ = strings.Cut(version, " on ") // the machine and compiler follow
		return name, "10.0"
	case kind == "sqlite":
		return version, "3.42"
	case strings.Contains(version, "MariaDB"):
		number, _, _ := strings.Cut(version, "-")
		return "MariaDB " + number, "10.6"
	default:
		return "MySQL " + version, "8.0"
	}
}

var numberForm = regexp.MustCompile(`(\d+)(?:\.(\d+))?`)

// olderThan reports whether the first number in version is lower than oldest. It returns
// false for a version without numbers.
func olderThan(version, oldest string) bool {
	have, want := numberForm.FindStringSubmatch(version), numberForm.FindStringSubmatch(oldest)
	if have == nil {
		return false
	}
	for i := 1; i <= 2; i++ {
		h, _ := strconv.Atoi(have[i])
		w, _ := strconv.Atoi(want[i])
		if h != w {
			return h < w
		}
	}
	return false
}
