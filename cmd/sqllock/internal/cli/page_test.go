//go:build unix

package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
	"github.com/sqllock/sqllock/migrations"
)

// client keeps no connections, so that the server has none to wait for.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// body returns the answer to a request: a form, or GET if there is none.
func body(t *testing.T, target string, form url.Values) (text string, status int) {
	t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r := check.Value(http.NewRequestWithContext(t.Context(), method, target, bytes.NewBufferString(form.Encode())))(t)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(r)
	check.Must(t, err)
	answer := check.Value(io.ReadAll(response.Body))(t)
	check.Must(t, response.Body.Close())
	return string(answer), response.StatusCode
}

// TestPageOutlivesItsReaders removes a row when nobody reads stderr any more, where the removal is printed.
func TestPageOutlivesItsReaders(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	check.Must(t, migrations.Up(t.Context(), db.DB.DB, dialect.SQLite(), nil))
	r := check.Value(sqllock.NewRepository(t.Context(), db.DB.DB, dialect.SQLite(), nil))(t)
	holder := r.NewHolder()
	check.Must(t, check.ErrorOf(r.Acquire(t.Context(), "orders/42", holder, time.Hour)))
	form := url.Values{"region": {"DEFAULT"}, "lock_key": {check.Value(r.LockKey("orders/42"))(t)}, "holder": {holder}}
	p := program.Start(t, db.DSN, "page", "--listen", "127.0.0.1:0", "--allow-unlock")
	at := addressOf(p)
	check.Must(t, p.Stderr.File.Close())
	for _, form := range []url.Values{form, nil} {
		_, status := body(t, at+map[bool]string{true: "unlock"}[form != nil], form)
		check.Equal(t, "status", status, http.StatusOK)
	}
	p.Signal(os.Interrupt)
	p.WantCode(0)
}

// TestPage starts the command, unlocks a lock in it, and ends it with a signal.
func TestPage(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	db := dbtest.SQLite(t)
	check.Must(t, migrations.Up(t.Context(), db.DB.DB, dialect.SQLite(), nil))
	r := check.Value(sqllock.NewRepository(t.Context(), db.DB.DB, dialect.SQLite(), nil))(t)
	holder := r.NewHolder()
	check.Must(t, check.ErrorOf(r.Acquire(t.Context(), "orders/42", holder, time.Hour)))
	lockKey := check.Value(r.LockKey("orders/42"))(t)
	form := url.Values{"region": {"DEFAULT"}, "lock_key": {lockKey}, "holder": {holder}}

	readOnly := program.Start(t, db.DSN, "page", "--listen", "127.0.0.1:0", "--name", "orders/42", "--role", "orders/42")
	at := addressOf(readOnly)
	if text, _ := body(t, at, nil); !strings.Contains(text, ">orders/42<") || !strings.Contains(text, "Elections") {
		t.Errorf("no lock in %s", text)
	}
	if _, status := body(t, at+"unlock", form); status != http.StatusForbidden {
		t.Errorf("a read-only page: status %d", status)
	}
	readOnly.Signal(os.Interrupt)
	readOnly.WantCode(0)

	file := filepath.Join(t.TempDir(), "password")
	check.Must(t, os.WriteFile(file, []byte("open: sesame\n"), 0o600))
	p := program.Start(t, db.DSN, "page", "--listen", "127.0.0.1:0", "--allow-unlock", "--password-file", file, "--name", "orders/42")
	at = addressOf(p)
	for _, wrong := range []string{"", "operator:@", "operator:open%3A%20sesam@", "operator:open%3A%20sesame%0A@"} {
		if text, status := body(t, strings.Replace(at, "//", "//"+wrong, 1), nil); status != http.StatusUnauthorized || strings.Contains(text, lockKey) {
			t.Errorf("password %q: status %d", wrong, status)
		}
	}
	if text, status := body(t, strings.Replace(at, "//", "//operator:open%3A%20sesame@", 1)+"unlock", form); status != http.StatusOK {
		t.Errorf("status %d: %s", status, text)
	}
	p.Stderr.Await("removed the row of orders/42 (" + lockKey + ") in region DEFAULT, held by " + holder)
	p.Signal(os.Interrupt)
	p.WantCode(0)
	if _, ok, err := r.Peek(t.Context(), "orders/42"); err != nil || ok {
		t.Errorf("the row is there, error %v", err)
	}
}

// addressOf returns the address that the command prints.
func addressOf(p *program.Program) string {
	p.Stdout.Await("http://127.0.0.1:")
	return p.Stdout.Lines.Text()
}
