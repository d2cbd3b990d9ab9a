package exec

import (
	"fmt"
	"os"
	"strings"
)

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
