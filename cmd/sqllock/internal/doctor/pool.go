package doctor

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// A shortcoming is what a pool lacks that an application opens with the DSN alone.
type shortcoming struct {
	question string // returns whether it does; not every server understands it
	text     string
	unsafe   string // what to add to the DSN if locks are not safe without it, or ""
}

const translated = " (text is translated, so two callers can hold the lock of one key that is not ASCII)"

var shortcomings = map[string][]shortcoming{
	"postgres": {
		// lib/pq asks for UTF8 itself, pgx leaves it to the database.
		{question: "SELECT current_setting('server_encoding') NOT IN ('UTF8', 'SQL_ASCII')", text: "client_encoding=UTF8" + translated, unsafe: "client_encoding=UTF8"},
		{question: "SELECT current_setting('idle_in_transaction_session_timeout') = '0'", text: "idle_in_transaction_session_timeout (a client that is gone keeps its rows locked)"},
		{question: "SELECT current_setting('jit') = 'on'", text: "jit=off (batches are compiled, which may take longer than they do)"},
		{question: "SELECT current_setting('default_transaction_isolation') <> 'serializable'", text: "sessions that acquire in one round trip (RepositoryOptions.Acquirers)"},
	},
	"mysql": {
		{question: "SELECT @@autocommit = 0", text: "autocommit=1 (a renewal is undone when the session ends, so two callers can hold the lock)", unsafe: "autocommit=1"},
		{question: "SELECT @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4'", text: "charset=utf8mb4" + translated, unsafe: "charset=utf8mb4"},
		{question: "SELECT @@innodb_lock_wait_timeout > 1", text: "innodb_lock_wait_timeout=1 (a statement waits longer for a row that is locked)"},
		{question: "SELECT @@idle_transaction_timeout = 0", text: "idle_transaction_timeout (a client that is gone keeps its rows locked)"},
		{question: "SELECT @@innodb_snapshot_isolation", text: "innodb_snapshot_isolation=0 (statements that have waited for a row are sent again)"}, // only newer MariaDBs know the variable
		{question: "SELECT @@tx_isolation <> 'SERIALIZABLE'", text: "sessions that acquire by one statement (RepositoryOptions.Acquirers)"},          // only MariaDB knows the variable
		{question: "SELECT @@version NOT LIKE '%MariaDB%' AND @@wait_timeout > 60", text: "wait_timeout=60 (a client that is gone keeps its rows locked)"},
	},
}

// checkPool compares the sessions that the DSN alone gives with those of Open.
func (e *examination) checkPool(ctx context.Context) []finding {
	possible := shortcomings[sqltext.Of(e.Dialect).Name]
	if len(possible) == 0 {
		return nil
	}
	db, err := sqlx.Open(e.Target.Driver, e.Target.Source)
	if err != nil {
		return nil // the DSN is for Open alone
	}
	defer func() { _ = db.Close() }() // nothing was written
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(ctx, session.OpenTimeout)
	defer cancel()
	var found []shortcoming
	for _, one := range possible {
		if one.unsafe != "" && strings.Contains(e.Target.Source, one.unsafe) {
			continue
		}
		var lacks bool
		if err := db.GetContext(ctx, &lacks, one.question); err == nil && lacks {
			found = append(found, one)
		}
	}
	return poolFindings(sqltext.Of(e.Dialect).Name, found)
}

// openers are the functions that open a pool which lacks nothing.
var openers = map[string]string{"postgres": "pgxlock.Open", "mysql": "mysqllock.Open"}

func poolFindings(dialect string, found []shortcoming) (findings []finding) {
	var texts []string
	for _, one := range found {
		if one.unsafe != "" {
			findings = append(findings, finding{noteworthy, "pool", "a pool that is opened with this DSN lacks " + one.text, "use " + openers[dialect] + ", or add " + one.unsafe + " to the DSN"})
			continue
		}
		texts = append(texts, one.text)
	}
	if len(texts) > 0 {
		findings = append(findings, finding{good, "pool", openers[dialect] + " sets all that locks need; a pool that your program opens itself with this DSN lacks: " + strings.Join(texts, ", "), ""})
	}
	return findings
}
