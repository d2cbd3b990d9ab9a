package locktable

import (
	"os"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// testdata/servers.tsv has what servers report of themselves, as their documentation or their users show it.
func TestEngineOf(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for line := range strings.Lines(string(check.Value(os.ReadFile("testdata/servers.tsv"))(t))) {
		name, server, _ := strings.Cut(strings.TrimSpace(line), "\t")
		check.Equal(t, server, EngineOf(server).Name, name)
		seen[name] = true
	}
	for _, e := range engines() {
		if !seen[e.Name] {
			t.Errorf("no server is %s", e.Name)
		}
		if (e.Refusal == "") != (e.Oldest != "") {
			t.Errorf("%s: it is refused, or has an oldest version", e.Name)
		}
	}
}
