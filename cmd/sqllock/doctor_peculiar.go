package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// checkPeculiar checks what only one kind of database can have wrong.
func (p *patient) checkPeculiar(ctx context.Context) []finding {
	switch p.Dialect.Name {
	case "mysql":
		return p.checkColumns(ctx)
	case "sqlite":
		return p.checkJournal(ctx)
	default:
		return nil
	}
}

// checkJournal wants the journal mode in which readers and writers do not block
// each other.
func (p *patient) checkJournal(ctx context.Context) []finding {
	var mode string
	if err := p.DB.GetContext(ctx, &mode, "PRAGMA journal_mode"); err != nil {
		return []finding{{noteworthy, "journal", "its mode is not known: " + findingText(err), "see that the file is an SQLite database"}}
	}
	if mode != "wal" {
		return []finding{{noteworthy, "journal", "mode " + mode + ": whoever looks at locks blocks those who take them", "PRAGMA journal_mode = WAL, once, in the database"}}
	}
	return []finding{{fine, "journal", "mode WAL", ""}}
}

// A column is what information_schema of MySQL tells about one.
type column struct {
	Name      string         `db:"column_name"`
	Collation sql.NullString `db:"collation_name"`
	Digits    sql.NullInt64  `db:"datetime_precision"`
}

// The names are given in small letters, because MySQL 8 answers in capitals
// otherwise and MariaDB does not.
const columnsQuery = `SELECT COLUMN_NAME AS column_name, COLLATION_NAME AS collation_name, DATETIME_PRECISION AS datetime_precision
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND TABLE_NAME = ?
ORDER BY ORDINAL_POSITION`

// checkColumns looks at what Spring's own script leaves to MySQL's settings.
func (p *patient) checkColumns(ctx context.Context) []finding {
	var columns []column
	if err := p.DB.SelectContext(ctx, &columns, columnsQuery, p.names.Schema, p.names.Prefix+"LOCK"); err != nil {
		return []finding{{noteworthy, "columns", "not known: " + findingText(err), "see that the user may read information_schema"}}
	}
	var findings []finding
	for _, c := range columns {
		switch name := strings.ToUpper(c.Name); name {
		case "LOCK_KEY", "REGION":
			findings = append(findings, p.collationFinding(name, c.Collation.String))
		case "CREATED_DATE", "EXPIRED_AFTER":
			findings = append(findings, p.precisionFinding(name, c.Digits.Int64))
		}
	}
	return findings
}

func (p *patient) collationFinding(name, collation string) finding {
	if !strings.HasSuffix(collation, "_ci") {
		return finding{fine, "collation", fmt.Sprintf("%s has %s, which tells a from A", name, collation), ""}
	}
	f := finding{fine, "collation", fmt.Sprintf("%s has %s, which takes a for A: no matter for Spring's keys", name, collation), ""}
	if name == "REGION" {
		f.text = fmt.Sprintf("%s has %s: regions that differ in case only are one", name, collation)
	}
	if name == "LOCK_KEY" && p.g.plainKeys {
		f.severity = noteworthy
		f.text = fmt.Sprintf("%s has %s, so plain keys that differ in case only are one lock", name, collation)
		f.advice = fmt.Sprintf("ALTER TABLE %s MODIFY LOCK_KEY CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, while nobody uses it", p.names.Lock)
	}
	return f
}

// precisionFinding wants microseconds. With fewer than milliseconds the library
// refuses the table.
func (p *patient) precisionFinding(name string, digits int64) finding {
	f := finding{fine, "precision", fmt.Sprintf("%s keeps %d digits of a second", name, digits), ""}
	if digits < 6 {
		f.severity = noteworthy
		f.advice = fmt.Sprintf("ALTER TABLE %s MODIFY %s DATETIME(6) NOT NULL, while nobody uses it", p.names.Lock, name)
	}
	if digits < 3 {
		f.severity = broken
		f.text += ": a lease would end before its holder knows"
	}
	return f
}
