// Package rights has the GRANTs of those who use the tables of the locks.
package rights

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// A Role is a kind of user of the tables, with rights of its own.
type Role string

// The roles.
const (
	Application Role = "application" // locks, and runs doctor
	Monitor     Role = "monitor"     // reads: list, describe, top, page
	Cleaner     Role = "cleaner"     // deletes rows that have expired
	Migrator    Role = "migrator"    // creates and changes the tables
)

// Roles are all roles.
var Roles = []Role{Application, Monitor, Cleaner, Migrator}

// ErrNoSchema is returned if the search path leads to no schema.
var ErrNoSchema = errors.New("this user sees no schema: run this as the owner of the tables, or name the schema in --prefix")

// ErrNoUsers is returned for SQLite.
var ErrNoUsers = errors.New("SQLite has no users: the file and its directory must be writable")

// A Grant is a statement, without a semicolon.
type Grant struct {
	On   string // the name of a table or sequence, with the prefix; or "" for a schema or a database
	Text string
}

// Versions returns the name of the table in which package migrations stores the version.
func Versions(names sqltext.Names) string { return names.Lock + "_MIGRATIONS" }

// Grants returns the statements that give a user what a role needs.
func Grants(ctx context.Context, db *sql.DB, d dialect.Dialect, names sqltext.Names, role Role, to string) ([]Grant, error) {
	switch sqltext.Of(d).Name {
	case "postgres":
		return onPostgres(ctx, db, names, role, to)
	case "mysql":
		return onMySQL(ctx, db, names, role, to)
	default:
		return nil, ErrNoUsers
	}
}

// onTables is what a role may do with each table, by its name.
func onTables(names sqltext.Names, role Role) [][2]string {
	lock, name, version := names.Lock, names.Name, Versions(names)
	switch role {
	case Monitor:
		return [][2]string{{lock, "SELECT"}, {name, "SELECT"}, {version, "SELECT"}}
	case Cleaner:
		return [][2]string{{lock, "SELECT, UPDATE, DELETE"}, {version, "SELECT"}}
	default:
		const all = "SELECT, INSERT, UPDATE, DELETE"
		return [][2]string{{lock, all}, {name, all}, {version, "SELECT"}}
	}
}

func onPostgres(ctx context.Context, db *sql.DB, names sqltext.Names, role Role, to string) ([]Grant, error) {
	schema, qualified := names.Schema, "" // a prefix is not quoted anywhere
	if schema == "" {
		var place sql.NullString
		// Where the search path leads to, or else where tables will be made.
		if err := db.QueryRowContext(ctx, `SELECT COALESCE((SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
			WHERE pg_class.oid = to_regclass($1)), current_schema())`, names.Lock).Scan(&place); err != nil {
			return nil, fmt.Errorf("read the schema: %w", err)
		}
		if !place.Valid {
			return nil, ErrNoSchema
		}
		schema = quoted(place.String, `"`)
		qualified = schema + "."
	}
	to, usage := quoted(to, `"`), "USAGE"
	if role == Migrator {
		usage += ", CREATE"
	}
	grants := []Grant{{"", fmt.Sprintf("GRANT %s ON SCHEMA %s TO %s", usage, schema, to)}}
	if role == Migrator {
		return grants, nil // only the owner of a table can change it, and the migrator owns what it creates
	}
	for _, t := range onTables(names, role) {
		grants = append(grants, Grant{t[0], fmt.Sprintf("GRANT %s ON %s TO %s", t[1], qualified+t[0], to)})
	}
	if role == Application {
		grants = append(grants, Grant{names.Fence, fmt.Sprintf("GRANT USAGE ON SEQUENCE %s TO %s", qualified+names.Fence, to)})
	}
	return grants, nil
}

func onMySQL(ctx context.Context, db *sql.DB, names sqltext.Names, role Role, to string) ([]Grant, error) {
	var database sql.NullString
	if names.Schema == "" {
		if err := db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
			return nil, fmt.Errorf("read the database: %w", err)
		}
	} else {
		database.String = names.Schema
	}
	on := func(table string) string {
		return quoted(database.String, "`") + "." + table[strings.LastIndexByte(table, '.')+1:]
	}
	to = account(to)
	if role == Migrator {
		// In the name of a database, other than in that of a table, these stand for other characters.
		pattern := strings.NewReplacer("_", `\_`, "%", `\%`).Replace(database.String)
		return []Grant{{"", fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP ON %s.* TO %s", quoted(pattern, "`"), to)}}, nil
	}
	tables := onTables(names, role)
	if role == Application {
		tables = append(tables, [2]string{names.Fence, "SELECT, INSERT, UPDATE, DELETE"})
	}
	grants := make([]Grant, len(tables))
	for i, t := range tables {
		grants[i] = Grant{t[0], fmt.Sprintf("GRANT %s ON %s TO %s", t[1], on(t[0]), to)}
	}
	return grants, nil
}

// account returns user@host of MySQL and MariaDB, in quotes. Without a host it is that of every host. "role@" is
// a role of MariaDB, which has none.
func account(user string) string {
	host := "%"
	if at := strings.LastIndexByte(user, '@'); at >= 0 {
		user, host = user[:at], user[at+1:]
	}
	if host == "" {
		return quoted(user, "`")
	}
	return quoted(user, "`") + "@" + quoted(host, "`")
}

// quoted returns an identifier in quotes.
func quoted(name, quote string) string {
	return quote + strings.ReplaceAll(name, quote, quote+quote) + quote
}

// Self returns the user of a connection, as Grants takes it, or "".
func Self(ctx context.Context, db *sql.DB) (user string) {
	if err := db.QueryRowContext(ctx, "SELECT CURRENT_USER").Scan(&user); err != nil {
		return ""
	}
	return user
}
