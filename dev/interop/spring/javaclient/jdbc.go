package javaclient

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

var errDSN = errors.New("no DSN for Java")

// jdbcOf translates a DSN of Go's drivers to what JDBC understands. Parameters of
// Go's drivers are left out, but for PostgreSQL's search_path.
func jdbcOf(dsn string, parameters map[string]string) (jdbc, user, password string, err error) {
	query := make(url.Values)
	for name, value := range parameters {
		query.Set(name, value)
	}
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return postgresJDBC(dsn, query)
	}
	return mariadbJDBC(dsn, query)
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

func mariadbJDBC(dsn string, query url.Values) (jdbc, user, password string, err error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", "", "", fmt.Errorf("%w: %w", errDSN, err)
	}
	if c.Net != "tcp" {
		return "", "", "", fmt.Errorf("%w: over %s, not tcp", errDSN, c.Net)
	}
	// MariaDB's driver does not decode what a query would have encoded.
	plain, err := url.QueryUnescape(query.Encode())
	return "jdbc:mariadb://" + c.Addr + "/" + c.DBName + "?" + plain, c.User, c.Passwd, err
}
