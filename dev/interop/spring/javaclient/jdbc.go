package javaclient

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

var errDSN = errors.New("no DSN for Java")

// A Driver is a JDBC driver of MySQL and MariaDB, by its name in a URL.
type Driver string

// The drivers work with both servers.
const (
	MariaDB    Driver = "mariadb"
	ConnectorJ Driver = "mysql"
)

// jdbcOf translates a DSN of Go's drivers to what JDBC understands. Parameters of
// Go's drivers are left out, but for PostgreSQL's search_path.
func jdbcOf(s Settings) (jdbc, user, password string, err error) {
	query := make(url.Values)
	for name, value := range s.Parameters {
		query.Set(name, value)
	}
	if strings.HasPrefix(s.DSN, "postgres://") || strings.HasPrefix(s.DSN, "postgresql://") {
		return postgresJDBC(s.DSN, query)
	}
	return mysqlJDBC(s.DSN, cmp.Or(s.Driver, MariaDB), query)
}

func postgresJDBC(dsn string, query url.Values) (jdbc, user, password string, err error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", "", "", fmt.Errorf("%w: %w", errDSN, err)
	}
	if schema := u.Query().Get("search_path"); schema != "" {
		query.Set("currentSchema", schema)
	}
	password, _ = u.User.Password()
	return "jdbc:postgresql://" + u.Host + u.Path + "?" + query.Encode(), u.User.Username(), password, nil
}

func mysqlJDBC(dsn string, driver Driver, query url.Values) (jdbc, user, password string, err error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", "", "", fmt.Errorf("%w: %w", errDSN, err)
	}
	if c.Net != "tcp" {
		return "", "", "", fmt.Errorf("%w: over %s, not tcp", errDSN, c.Net)
	}
	// Without TLS, as in Go's DSN; version 4 of MariaDB's driver asks for it otherwise.
	query.Set("sslMode", "DISABLED")
	query.Set("allowPublicKeyRetrieval", "true")
	parameters := query.Encode()
	if driver == MariaDB {
		// It does not decode what a query would have encoded.
		query.Set("sslMode", "disable")
		if parameters, err = url.QueryUnescape(query.Encode()); err != nil {
			return "", "", "", err
		}
	}
	return "jdbc:" + string(driver) + "://" + c.Addr + "/" + c.DBName + "?" + parameters, c.User, c.Passwd, nil
}
