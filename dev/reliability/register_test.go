//go:build linux

package reliability

import (
	"context"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/test/check"
)

// The lock protects the register: the token of the last writer. The history has all writes in
// the order of their commits, because a writer locks the register's row from its write until
// its commit.
const createRegister = `CREATE TABLE register (name VARCHAR(100) PRIMARY KEY, n INTEGER NOT NULL, token BIGINT NOT NULL);
CREATE TABLE history (name VARCHAR(100) NOT NULL, n INTEGER NOT NULL, token BIGINT NOT NULL, PRIMARY KEY (name, n))`

func (b *base) createRegister(t *testing.T) {
	t.Helper()
	for statement := range strings.SplitSeq(createRegister, ";") {
		must(t, check.ErrorOf(b.db.ExecContext(t.Context(), statement)))
	}
}

func (b *base) openAccount(t *testing.T, name string) {
	t.Helper()
	must(t, check.ErrorOf(b.db.ExecContext(t.Context(), b.db.Rebind("INSERT INTO register VALUES (?, 0, 0)"), name)))
}

// register writes a token.
func register(ctx context.Context, tx *sqlx.Tx, name string, token int64) error {
	for _, statement := range []string{
		"UPDATE register SET n = n + 1, token = ? WHERE name = ?",
		"INSERT INTO history SELECT name, n, token FROM register WHERE token = ? AND name = ?",
	} {
		if _, err := tx.ExecContext(ctx, tx.Rebind(statement), token, name); err != nil {
			return err
		}
	}
	return nil
}

// stale returns the number of writes, and how many of them came after a write of a later
// holder.
func (b *base) stale(t *testing.T, name string) (all, stale int) {
	t.Helper()
	var tokens []int64
	must(t, b.db.SelectContext(t.Context(), &tokens, b.db.Rebind("SELECT token FROM history WHERE name = ? ORDER BY n"), name))
	var highest int64
	for _, token := range tokens {
		if token < highest {
			stale++
		}
		highest = max(highest, token)
	}
	return len(tokens), stale
}
