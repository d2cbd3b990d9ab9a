package main

import (
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql" // also registers the driver "mysql"

	"github.com/sqllock/sqllock/dialect"
)

// driverForm tells a DSN of the Go driver that somebody put mysql:// before.
var driverForm = regexp.MustCompile(`(^|@)(tcp|unix)\(`)

// parseMySQLURL parses what follows mysql://. Parameters are those of the Go
// driver.
func parseMySQLURL(rest string) (target, error) {
	if driverForm.MatchString(rest) {
		return parseMySQL(rest)
	}
	if straysFromURL(rest) {
		return target{}, usageError(strayText)
	}
	u, err := url.Parse("mysql://" + rest)
	if err != nil || u.Hostname() == "" {
		return target{}, usageError("the DSN is not a URL like mysql://user:password@host:3306/database; " +
			"in a password, special characters are written %%XX")
	}
	config := mysql.NewConfig()
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net = "tcp"
	config.Addr = net.JoinHostPort(u.Hostname(), portOrDefault(u.Port()))
	config.DBName = strings.TrimPrefix(u.Path, "/")
	dsn := config.FormatDSN()
	if u.RawQuery == "" {
		return mysqlTarget(dsn, config)
	}
	separator := "?"
	if strings.Contains(dsn[strings.LastIndexByte(dsn, '/'):], "?") {
		separator = "&"
	}
	dsn += separator + u.RawQuery
	if config, err = mysql.ParseDSN(dsn); err != nil {
		// The host is well-formed and nothing strays behind it, so the
		// parameters are what the error is about.
		return target{}, usageError("the DSN has wrong parameters behind its ?: %w", err)
	}
	return mysqlTarget(dsn, config)
}

func portOrDefault(port string) string {
	if port == "" {
		return "3306"
	}
	return port
}

// parseMySQL parses a DSN of the Go driver.
func parseMySQL(dsn string) (target, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil || strings.ContainsAny(config.DBName, "@()") || (config.Net != "tcp" && config.Net != "unix") {
		return target{}, usageError("the DSN is not like user:password@tcp(host:3306)/database")
	}
	return mysqlTarget(dsn, config)
}

func mysqlTarget(dsn string, config *mysql.Config) (target, error) {
	if config.DBName == "" {
		return target{}, usageError("the DSN names no database: it ends in /database")
	}
	host := config.Addr
	if config.Net == "unix" {
		host = "unix(" + config.Addr + ")"
	}
	shown := shownURL("mysql", config.User, host, config.DBName)
	return target{driver: "mysql", source: dsn, dialect: dialect.MySQL(), redacted: shown}, nil
}
