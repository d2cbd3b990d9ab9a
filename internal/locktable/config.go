package locktable

import (
	"database/sql"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// A Config says which table, and how its rows are acquired. The root package has checked it.
type Config struct {
	DB       *sqlx.DB // stays the caller's
	Dialect  dialect.Dialect
	Names    dialect.Names // without a Fence no tokens are drawn, without a Channel releases do not notify
	Region   string
	ClientID string         // random if ""
	ASCII    bool           // whether Region and all LOCK_KEYs are ASCII
	Layout   dialect.Layout // asked of the database if 0

	Isolation       sql.IsolationLevel // of the transaction that acquires
	Autocommit      bool               // acquire without an explicit transaction
	Acquirers       *sqlx.DB           // sessions with that isolation, which acquire without one; nil for none
	OnFallback      func(error)        // is told why one of Acquirers was not used; may be nil
	MultiStatements bool               // DB takes several statements, with arguments, in one message
	DisableBatching bool
}
