package top

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/virtual"
)

var picture = flag.String("picture", "", "the file to write a picture of top to, an SVG")

// TestPicture draws what top shows in a terminal over a table with locks of several processes. With
// -picture it writes that of the docs.
func TestPicture(t *testing.T) {
	t.Parallel()
	db := virtual.Migrated(t, dialect.Spring7)
	r, err := sqllock.NewRepository(t.Context(), db.DB.DB, dialect.SQLite(), nil)
	must(t, err)
	const instant = "2006-01-02 15:04:05.000"
	now := time.Now().UTC()
	for _, row := range []struct {
		key, region, holder string
		age, left           time.Duration
	}{
		{"nightly-report", "billing", "batch-2:991-0b1c33e0a42", 75 * time.Minute, 55 * time.Second},
		{"scheduler", "DEFAULT", "10.12.13.14:8080-00ff3a21c9e", 40 * time.Minute, 25 * time.Second},
		{"orders/42", "DEFAULT", "web-1:4711-0a3f9c52e11", 32 * time.Second, 9 * time.Second},
		{"orders/57", "DEFAULT", "web-1:4711-0a3f9c52e2f", 9 * time.Second, 21 * time.Second},
		{"stock/7 <main>", "DEFAULT", "web-2:4711-0a3f9c53003", 4 * time.Second, 26 * time.Second},
		{"cart/7", "DEFAULT", "web-3:20-0a3f9c52f02", time.Hour, -time.Minute},
	} {
		_, err := db.DB.ExecContext(t.Context(), "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES (?, ?, ?, ?, ?)",
			row.key, row.region, row.holder, now.Add(-row.age).Format(instant), now.Add(row.left).Format(instant))
		must(t, err)
	}
	s := watched(t, r)
	must(t, unix.IoctlSetWinsize(int(s.user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 11}))
	s.press("\x1b[B\x1b[B")
	lines := s.frame()
	for !isWhole(lines) {
		lines = s.frame()
	}
	s.press("q")
	s.end()
	svg := screenshot(lines, 100)
	for _, want := range []string{"held, ", "stock/7 &lt;main&gt;", "batch-2:991-0b1c33e0a42", "━", `class="a7"`, "q quit"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	if strings.Contains(svg, "\x1b") {
		t.Error("a sequence of the terminal is left")
	}
	if *picture != "" {
		must(t, os.WriteFile(*picture, []byte(svg), 0o600))
	}
}

// isWhole reports whether a screen has the new size, and its third lock is selected.
func isWhole(lines []string) bool {
	return len(lines) == 11 && strings.Contains(lines[5], "\x1b[7m")
}
