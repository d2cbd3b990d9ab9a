package cli

import (
	"net"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A server that accepts connections and never answers ends in no candidates, not in a shell that
// hangs. The second that this takes is the limit itself.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	listener := check.Value((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t) // the system accepts for it
	defer listener.Close()
	address := listener.Addr().String()
	for _, dsn := range []string{"postgres://app@" + address + "/app?sslmode=disable", "mysql://app@" + address + "/app"} {
		flags := &connect.Flags{DSN: dsn, Prefix: "INT_", Region: "DEFAULT"}
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		offered, directive := complete.Rows(flags)(cmd, nil, "")
		if len(offered) > 0 || directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%s: %q, %v", dsn, offered, directive)
		}
	}
}
