package doctor

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// A column is a row of MySQL's information_schema.COLUMNS.
type column struct {
	Name      string         `db:"column_name"`
	Collation sql.NullString `db:"collation_name"`
	Type      string         `db:"data_type"`
	Digits    sql.NullInt64  `db:"datetime_precision"`
}

func (c column) isTime() bool {
	name := strings.ToUpper(c.Name)
	return name == "CREATED_DATE" || name == "EXPIRED_AFTER"
}

// columnsQuery names its columns in lower case: without that, MySQL 8 returns upper case
// and MariaDB does not.
const columnsQuery = `SELECT COLUMN_NAME AS column_name, COLLATION_NAME AS collation_name, DATA_TYPE AS data_type, DATETIME_PRECISION AS datetime_precision
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND TABLE_NAME = ?
ORDER BY ORDINAL_POSITION`

// columns returns the columns of the lock table in MySQL.
func (e *examination) columns(ctx context.Context) (columns []column, err error) {
	err = e.DB.SelectContext(ctx, &columns, columnsQuery, e.names.Schema, e.names.Prefix+"LOCK")
	return columns, err
}

// minDigits is the number of digits of a second that a lease needs.
const minDigits = 3

// hasWrongTimes reports whether a column of the lock table in MySQL keeps too few digits
// of a second, or has a time zone.
func (e *examination) hasWrongTimes(ctx context.Context) bool {
	if e.Dialect.Name != "mysql" {
		return false
	}
	columns, err := e.columns(ctx)
	return err == nil && slices.ContainsFunc(columns, func(c column) bool {
		return c.isTime() && (c.Digits.Int64 < minDigits || strings.EqualFold(c.Type, "timestamp"))
	})
}

// checkColumns checks settings of columns that Spring's own script leaves to the server.
func (e *examination) checkColumns(ctx context.Context) []finding {
	columns, err := e.columns(ctx)
	if err != nil {
		return []finding{{noteworthy, "columns", "not known: " + exit.Text(err), "check that the user may read information_schema"}}
	}
	var findings []finding
	for _, c := range columns {
		switch name := strings.ToUpper(c.Name); {
		case name == "LOCK_KEY" || name == "REGION":
			findings = append(findings, e.collationFinding(name, c.Collation.String))
		case c.isTime():
			findings = append(findings, e.timeFinding(name, c.Type, c.Digits.Int64))
		}
	}
	return findings
}

func (e *examination) collationFinding(name, collation string) finding {
	if !strings.HasSuffix(collation, "_ci") {
		return finding{good, "collation", fmt.Sprintf("%s has %s, which distinguishes a from A", name, collation), ""}
	}
	f := finding{good, "collation", fmt.Sprintf("%s has %s, which does not distinguish a from A: this does not affect Spring's keys", name, collation), ""}
	if name == "REGION" {
		f.Text = fmt.Sprintf("%s has %s: regions that differ only in case are the same", name, collation)
	}
	if name == "LOCK_KEY" && e.flags.PlainKeys {
		f.Severity = noteworthy
		f.Text = fmt.Sprintf("%s has %s, so plain keys that differ only in case are the same lock", name, collation)
		f.Advice = fmt.Sprintf("ALTER TABLE %s MODIFY LOCK_KEY CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, while no program uses it", e.names.Lock)
	}
	return f
}

// timeFinding checks for microseconds without a time zone. The library rejects a table with fewer digits
// than milliseconds, and a TIMESTAMP.
func (e *examination) timeFinding(name, kind string, digits int64) finding {
	f := finding{good, "precision", fmt.Sprintf("%s keeps %d digits of a second", name, digits), ""}
	isZoned := strings.EqualFold(kind, "timestamp")
	if digits < 6 || isZoned {
		f.Severity = noteworthy
		f.Advice = fmt.Sprintf("ALTER TABLE %s MODIFY %s DATETIME(6) NOT NULL, while no program uses it", e.names.Lock, name)
	}
	if digits < minDigits {
		f.Severity = broken
		f.Text += ": a lease would end before its holder knows"
	}
	if isZoned {
		f.Severity = broken
		f.Text = name + " is a TIMESTAMP: sessions of different time zones would hold one lock together"
	}
	return f
}
