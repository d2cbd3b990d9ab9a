//go:build interop

package spring_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
)

// TestOurCommandsReadSpringsRows runs `sqllock list` and `sqllock doctor` on a table in which
// Java holds a lock.
func TestOurCommandsReadSpringsRows(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		c.sqllock(t, "version") // Go builds it, which may take as long as a lease
		java := c.java(t, javaclient.Settings{TTL: long, ClientID: "billing-java"}).Thread("a")
		must(t, java.Lock(ctx, key))
		var rows []struct {
			Key, Region, State, Holder string
			LeftSeconds                float64 `json:"left_seconds"`
		}
		text := c.sqllock(t, "list", "--json", "--name", key, "--ttl", long.String())
		must(t, json.Unmarshal(text, &rows))
		if len(rows) != 1 {
			t.Fatalf("list: %s", text)
		}
		row := rows[0]
		if row.Key != key || row.Region != "DEFAULT" || row.State != "held" || row.Holder != "billing-java" {
			t.Errorf("list: %+v", row)
		}
		if row.LeftSeconds <= long.Seconds()/2 || row.LeftSeconds > long.Seconds() {
			t.Errorf("%v s are left of %v", row.LeftSeconds, long)
		}
		t.Logf("doctor:\n%s", c.sqllock(t, "doctor")) // the test checks its exit code
		must(t, java.Unlock(ctx, key))
	})
}

// sqllock runs the command on the cell's database and returns its output.
func (c *cell) sqllock(t *testing.T, arguments ...string) []byte {
	t.Helper()
	text, err := c.try(t, arguments...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, text)
	}
	return text
}

// try runs the command, which may fail. Go builds it once.
func (c *cell) try(t *testing.T, arguments ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "github.com/sqllock/sqllock/cmd/sqllock"}, arguments...)...)
	cmd.Env = append(os.Environ(), "SQLLOCK_DSN="+c.db.DSN, "XDG_STATE_HOME="+t.TempDir())
	cmd.Stderr = os.Stderr
	return cmd.Output()
}
