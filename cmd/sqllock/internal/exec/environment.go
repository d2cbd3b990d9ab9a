package exec

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
)

// The environment variables in which a command finds the keys of its lock: the first, and all of
// them, one a line, as inLine has them.
const (
	keyVariable  = "SQLLOCK_KEY"
	keysVariable = "SQLLOCK_KEYS"
)

// inLine writes a key on one line, from which printf %b of a shell makes the key again.
var inLine = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

// environment returns the variables of a command under a lease.
func (x *execution) environment(lease *sqllock.Lease) []string {
	token := "" // without fencing; never that of an outer exec
	if lease.Token() > 0 {
		token = strconv.FormatInt(lease.Token(), 10)
	}
	lines := x.keys()
	for i, key := range lines {
		lines[i] = inLine.Replace(key)
	}
	return append(os.Environ(),
		keyVariable+"="+x.key,
		keysVariable+"="+strings.Join(lines, "\n"),
		"SQLLOCK_TOKEN="+token,
		// Many scripts cannot read fractions of a second. They are cut off, so that
		// the time is never too late.
		"SQLLOCK_DEADLINE="+lease.Deadline().UTC().Format(time.RFC3339))
}

// tokenText describes the fencing token of a lease.
func tokenText(lease *sqllock.Lease) string {
	if lease.Token() == 0 {
		return "without a fencing token"
	}
	return fmt.Sprintf("fencing token %d", lease.Token())
}

// runsUnder reports whether this process was started by an exec under a lock of the key.
func runsUnder(key string) bool {
	return key == os.Getenv(keyVariable) || slices.Contains(strings.Split(os.Getenv(keysVariable), "\n"), inLine.Replace(key))
}

// clientID returns a CLIENT_ID by which people recognize this process in the table: the
// host and the process id. If the host's name is too long, its end is used: the names
// of pods differ there.
func clientID() string {
	const longest = 16 // of 24; a colon and up to 7 digits follow
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	host = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, host)
	return fmt.Sprintf("%s:%d", host[max(0, len(host)-longest):], os.Getpid())
}
