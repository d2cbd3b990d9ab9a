package dsn

import (
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql" // also registers the driver "mysql"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/cli/exit"
)

// driverForm matches a DSN of the Go driver with mysql:// put before it.
var driverForm = regexp.MustCompile(`(^|@)(tcp|unix)\(`)

// parseMySQLURL parses what follows mysql://. Parameters are those of the Go
// driver.
func parseMySQLURL(rest string) (Target, error) {
	if driverForm.MatchString(rest) {
		return parseMySQL(rest)
	}
	if hasStray(rest) {
		return Target{}, exit.Usagef(strayText)
	}
	u, err := url.Parse("mysql://" + rest)
	if err != nil || u.Hostname() == "" {
		return Target{}, exit.Usagef("the DSN is not a URL like mysql://user:password@host:3306/database; " +
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
		// The host is well-formed and nothing stray follows it, so the error is
		// about the parameters.
		return Target{}, exit.Usagef("the DSN has wrong parameters after its ?: %w", err)
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
func parseMySQL(dsn string) (Target, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil || strings.ContainsAny(config.DBName, "@()") || (config.Net != "tcp" && config.Net != "unix") {
		return Target{}, exit.Usagef("the DSN is not like user:password@tcp(host:3306)/database")
	}
	return mysqlTarget(dsn, config)
}

func mysqlTarget(dsn string, config *mysql.Config) (Target, error) {
	if config.DBName == "" {
		return Target{}, exit.Usagef("the DSN names no database: it must end in /database")
	}
	host := config.Addr
	if config.Net == "unix" {
		host = "unix(" + config.Addr + ")"
	}
	redacted := redactedURL("mysql", config.User, host, config.DBName)
	return Target{driver: "mysql", source: dsn, Dialect: dialect.MySQL(), Redacted: redacted}, nil
}
