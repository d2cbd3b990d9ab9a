package dbtest

import (
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// With returns a DSN for the same database in which parameters have other
// values, for [DB.OpenDSN]. Which there are is the driver's business: for
// MySQL, for example, parseTime=true, loc=Asia/Kolkata, or a variable of the
// session, whose value is SQL: time_zone='+05:30' with its quotes. SQLite's
// are added to those that are there, since _pragma can occur repeatedly.
func (db *DB) With(tb testing.TB, parameters map[string]string) string {
	tb.Helper()
	switch db.Driver {
	case "mysql":
		return withMySQL(tb, db.DSN, parameters)
	case "sqlite":
		return db.DSN + "&" + encode(parameters)
	default:
		return urlWith(tb, db.DSN, func(u *url.URL) { setParameters(u, parameters) })
	}
}

// withMySQL appends the parameters: of a name that occurs twice the driver
// takes the last.
func withMySQL(tb testing.TB, dsn string, parameters map[string]string) string {
	tb.Helper()
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	config, err := mysql.ParseDSN(dsn + separator + encode(parameters))
	if err != nil {
		tb.Fatalf("DSN with %v: %v", parameters, err)
	}
	return config.FormatDSN()
}

func encode(parameters map[string]string) string {
	values := make(url.Values)
	for name, value := range parameters {
		values.Set(name, value)
	}
	return values.Encode()
}
