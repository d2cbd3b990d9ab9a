package runs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/names"
)

// TestARecordFits has keys and processes that NAME cannot keep: what matters most stays.
func TestARecordFits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key, host, application string
		wantKey, wantHost      string
	}{
		"short":                  {"nightly", "web-7", "report.sh", "nightly", "web-7"},
		"a long application":     {"nightly", "web-7", strings.Repeat("a", 990), "nightly", "web-7"},
		"a long process":         {"nightly", strings.Repeat("h", 990), "", "nightly", ""},
		"a long key":             {strings.Repeat("k", 990), "web-7", "", strings.Repeat("k", 100) + "...", ""},
		"no ASCII":               {strings.Repeat("ü", 500), "web-7", "", strings.Repeat("ü", 50) + "...", ""},
		"control characters":     {strings.Repeat("\x01", 500), "web-7", "", strings.Repeat("\x01", 100) + "...", ""},
		"a character cut in two": {"k" + strings.Repeat("🔒", 200), "", "", "k" + strings.Repeat("🔒", 24) + "...", ""},
	} {
		r := record{Key: test.key, Process: sqllock.Process{Host: test.host, Application: test.application}, Runs: 1 << 40, Failures: 7}
		text := r.text()
		var got record
		if err := json.Unmarshal([]byte(text), &got); err != nil || !names.Fits(text) {
			t.Errorf("%s: %v, %d characters: %s", name, err, len(text), text)
		}
		if got.Key != test.wantKey || got.Process.Host != test.wantHost || got.Runs != 1<<40 || got.Failures != 7 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
