package dbtest

import (
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// With returns a DSN for the same database with other parameters, for [DB.OpenDSN]. The parameters are those of the
// driver: for MySQL, for example, parseTime=true, loc=Asia/Kolkata, or a session variable with an SQL value, such as
// time_zone='+05:30' with its quotes. SQLite's parameters are added to the existing ones, since _pragma can occur
// several times.
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

// withMySQL appends the parameters: if a name occurs twice, the driver uses the last value.
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
