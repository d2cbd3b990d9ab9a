// Package mysqldriver makes sessions of MySQL and MariaDB over go-sql-driver.
package mysqldriver

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql" // also registers the driver "mysql"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bell"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/sqltext"
)

var (
	errURL = errors.New("the DSN is not a URL like mysql://user:password@host:3306/database; " +
		"in a password, special characters are written %XX")
	errForm       = errors.New("the DSN is not like user:password@tcp(host:3306)/database")
	errNoDatabase = errors.New("the DSN names no database: it must end in /database")
)

var scheme = regexp.MustCompile(`(?i)^(?:mysql|mariadb|tidb)://`)

// Parse returns the database that a DSN names: mysql://…, mariadb://…, tidb://…, or the driver's own
// form, which may follow mysql:// as well. Parameters are those of the driver. Its errors
// never contain a part of a password.
func Parse(dsn string) (session.Target, error) {
	found := scheme.FindString(dsn)
	if found == "" {
		return parseForm(dsn)
	}
	t, err := parseURL(dsn[len(found):])
	if strings.EqualFold(found, "tidb://") {
		t.Dialect, t.Redacted = dialect.TiDB(), "tidb"+strings.TrimPrefix(t.Redacted, "mysql")
	}
	return t, err
}

// driverForm matches a DSN of the Go driver with mysql:// put before it.
var driverForm = regexp.MustCompile(`(^|@)(tcp|unix)\(`)

// parseURL parses what follows mysql://.
func parseURL(rest string) (session.Target, error) {
	if driverForm.MatchString(rest) {
		return parseForm(rest)
	}
	if session.HasStray(rest) {
		return session.Target{}, session.ErrStray
	}
	u, err := url.Parse("mysql://" + rest)
	if err != nil || u.Hostname() == "" {
		return session.Target{}, errURL
	}
	config := mysql.NewConfig()
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net = "tcp"
	config.Addr = net.JoinHostPort(u.Hostname(), portOrDefault(u.Port()))
	config.DBName = strings.TrimPrefix(u.Path, "/")
	dsn := config.FormatDSN()
	if u.RawQuery == "" {
		return target(dsn, config)
	}
	separator := "?"
	if strings.Contains(dsn[strings.LastIndexByte(dsn, '/'):], "?") {
		separator = "&"
	}
	base := dsn + separator
	dsn = base + u.RawQuery
	if config, err = mysql.ParseDSN(dsn); err != nil {
		// The host is well-formed and nothing stray follows it, so the error is
		// about the parameters.
		parse := func(one string) error { _, err := mysql.ParseDSN(base + one); return err }
		return session.Target{}, session.WrongParameters(u.RawQuery, parse, err)
	}
	return target(dsn, config)
}

func portOrDefault(port string) string {
	if port == "" {
		return "3306"
	}
	return port
}

// otherForm matches a DSN of another database. With an @ and a / in its password, the driver would take a part of
// that for the name of a user or of the database.
var otherForm = regexp.MustCompile(session.KeywordForm.String() + `|^[A-Za-z][A-Za-z0-9+.-]*://`)

// parseForm parses a DSN of the driver.
func parseForm(dsn string) (session.Target, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil || otherForm.MatchString(dsn) || strings.ContainsAny(config.DBName, "@()") || (config.Net != "tcp" && config.Net != "unix") {
		return session.Target{}, cmp.Or(session.OtherDatabase(dsn, "a MySQL"), errOfParameters(dsn), errForm)
	}
	return target(dsn, config)
}

// errOfParameters returns the error for a DSN of the driver that parses without its parameters, or nil. They are not
// taken for parameters if they may be the rest of a password.
func errOfParameters(dsn string) error {
	at := strings.LastIndexByte(dsn, '?')
	if at < 0 || strings.ContainsAny(dsn[at:], "@()/") {
		return nil
	}
	parse := func(one string) error { _, err := mysql.ParseDSN(dsn[:at+1] + one); return err }
	if _, err := parseForm(dsn[:at]); err == nil {
		return session.WrongParameters(dsn[at+1:], parse, parse(dsn[at+1:]))
	}
	return nil
}

func target(dsn string, config *mysql.Config) (session.Target, error) {
	if config.DBName == "" {
		return session.Target{}, errNoDatabase
	}
	host := config.Addr
	if config.Net == "unix" {
		host = "unix(" + config.Addr + ")"
	}
	redacted := session.RedactedURL("mysql", config.User, host, config.DBName)
	t := session.Target{
		Dialect: dialect.MySQL(), Redacted: redacted, Driver: "mysql", Source: dsn,
		SerializablePool: !sets(config.Params, "tx_isolation") && !sets(config.Params, "transaction_isolation"),
		Idle:             idle, Prepares: true, Bell: newBell, IsLost: isLost, Connector: connector,
	}
	if useMessages(config.Clone()) {
		t.MultiStatements = takesMessages
	}
	if config.Net == "tcp" && config.DialFunc == nil {
		t.Address = config.Addr
	}
	return t, nil
}

func newBell(sessions, pool *sql.DB) session.Bell {
	d := sqltext.MySQL()
	return bell.New(sessions, pool, &d)
}

// errNil is for a configuration that is missing.
var errNil = errors.New("the configuration is nil")

// Configured returns the database of a configuration of the driver.
func Configured(config *mysql.Config) (session.Target, error) {
	if config == nil {
		return session.Target{}, errNil
	}
	own := config.Clone() // what the caller does with theirs later changes nothing
	if own.Loc == nil {
		own.Loc = time.UTC // as of NewConfig
	}
	plain, err := mysql.NewConnector(own.Clone())
	if err != nil {
		return session.Target{}, err
	}
	t, err := target("", own)
	t.Plain = plain
	t.Connector = func(_ string, s session.Settings) (driver.Connector, error) { return connectorOf(own.Clone(), s) }
	return t, err
}

// isLost reports whether the server does not know a prepared statement, or does not prepare it.
func isLost(err error) bool {
	answer := new(mysql.MySQLError)
	return errors.As(err, &answer) && slices.Contains([]uint16{
		1243, // ER_UNKNOWN_STMT_HANDLER: as behind a proxy that gives the connection another session
		1295, // ER_UNSUPPORTED_PS
		1461, // ER_MAX_PREPARED_STMT_COUNT_REACHED: for all sessions of the server
		1615, // ER_NEED_REPREPARE: the table changes all the time
	}, answer.Number)
}

func connector(source string, s session.Settings) (driver.Connector, error) {
	config, err := mysql.ParseDSN(source)
	if err != nil {
		return nil, err
	}
	return connectorOf(config, s)
}

// connectorOf returns a connector of config, which it changes.
func connectorOf(config *mysql.Config, s session.Settings) (driver.Connector, error) {
	if config.Net == "unix" {
		if err := session.Absolute(&config.Addr); err != nil {
			return nil, err
		}
	}
	useMessages(config)
	config.Logger = &mysql.NopLogger{} // it returns the errors, and would write them to stderr too
	if config.Timeout == 0 {
		// A name may lead to several addresses, and a batch has 5 s: the next one must have its turn.
		config.Timeout = session.HostTimeout
	}
	if config.ConnectionAttributes == "" {
		config.ConnectionAttributes = "program_name:sqllock"
	}
	if config.Params == nil {
		config.Params = make(map[string]string)
	}
	complete(config.Params)
	if s.BriefWaits && !sets(config.Params, tableWait) {
		config.Params[tableWait] = "1"
	}
	if s.Serializable {
		// Only MariaDB reads it. Oracle's MySQL takes several statements to acquire.
		config.Params["autocommit"] += " /*M!100600 , tx_isolation = 'SERIALIZABLE' */"
	}
	if !sets(config.Params, snapshots) {
		config.Params["autocommit"] += " /*M!110602 , " + snapshots + " = OFF */"
	}
	if s.Unlimited {
		maps.DeleteFunc(config.Params, func(name, _ string) bool { return limits.MatchString(name) })
		config.Params["autocommit"] += " /*!80000 , max_execution_time = 0 */ /*M!100600 , max_statement_time = 0 */"
		config.ReadTimeout = 0
	}
	for name, value := range config.Params {
		config.Params[name] = s.Rewrite(value)
	}
	return mysql.NewConnector(config)
}

// snapshots is a variable that is on by default from MariaDB 11.6.2 on. At SERIALIZABLE each
// statement that has waited for a row then fails with 1020, and is sent again. A statement of
// sqllock's reads what it locks, and needs no snapshot.
const snapshots = "innodb_snapshot_isolation"

// tableWait is the variable that limits the wait for a locked table, as by FLUSH TABLES WITH READ LOCK: a year by
// default. The server does not notice meanwhile that its client has gone, and executes the statement in the end.
const tableWait = "lock_wait_timeout"

// takesMessages reports whether sessions take several statements in a message. MySQL Router does not where it lets clients share
// sessions (connection_sharing=1). It returns ErrCharset unless the server reads statements in the character set in which
// the driver quotes arguments. The names of parameters do not say it: their values are SQL.
func takesMessages(ctx context.Context, db *sql.DB) (bool, error) {
	const question = "SELECT @@character_set_client"
	var charset string
	err := db.QueryRowContext(ctx, question+"; SELECT 1").Scan(&charset)
	answer := new(mysql.MySQLError)
	refused := errors.As(err, &answer) && answer.Number == erMultiStatements
	if refused {
		err = db.QueryRowContext(ctx, question).Scan(&charset)
	}
	if err == nil && charset != "utf8mb4" {
		err = fmt.Errorf("%w: it is %s", session.ErrCharset, charset)
	}
	return !refused && err == nil, err
}

// erMultiStatements is MySQL Router's error for several statements in a message, where clients share sessions.
const erMultiStatements = 4501

// useMessages lets the driver send several statements with arguments in one message, and reports
// whether it can. The driver puts the arguments into the text then, which is safe in UTF-8: in
// some other character sets a part of a character can be a quote. So the connection uses
// UTF-8, whatever the DSN and the server say, unless the DSN sets the variables one by one.
func useMessages(config *mysql.Config) bool {
	for parameter := range config.Params {
		if strings.HasPrefix(strings.ToLower(parameter), "character_set") {
			return false
		}
	}
	if err := config.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return false
	}
	config.InterpolateParams, config.MultiStatements = true, true
	// The server's error says that a message is too large. The driver's own does not, where
	// it prepares what it cannot send otherwise.
	config.MaxAllowedPacket = max(config.MaxAllowedPacket, mysql.NewConfig().MaxAllowedPacket)
	return true
}

// idle is less than the wait_timeout of complete.
const idle = 30 * time.Second

// complete adds to the variables of a session what locks need, unless the DSN sets it. Each
// statement outside of a transaction commits, whatever the DSN and the server say: otherwise a
// renewal would be undone when the session ends. A
// statement waits for a row for a second: Oracle's MySQL has no limit for a single statement. The
// server notices a client that is gone with a transaction open: MariaDB has a limit for that,
// and Oracle's MySQL one for all idle sessions.
func complete(parameters map[string]string) {
	for name := range parameters {
		if autocommit.MatchString(name) {
			delete(parameters, name)
		}
	}
	for name, value := range defaults {
		if !sets(parameters, name) {
			parameters[name] = value
		}
	}
	if !sets(parameters, rowWait) {
		parameters[rowWait] = "1"
	}
	parameters["autocommit"] = "1"
	// The other assignments follow in comments, which only one kind of server reads.
	if !sets(parameters, "idle_transaction_timeout") {
		parameters["autocommit"] += " /*M!100600 , idle_transaction_timeout = 10 */"
	}
	if !sets(parameters, "wait_timeout") {
		parameters["autocommit"] += " /*!80000 , wait_timeout = 60 */"
	}
}

// rowWait is the variable that limits the wait for a row.
const rowWait = "innodb_lock_wait_timeout"

// defaults are those of the server, whatever a DBA has set for all sessions: a limit leaves rows out of
// statements about several, and sql_safe_updates refuses some of them. Vitess reads a limit as a signed number.
var defaults = map[string]string{"sql_select_limit": "9223372036854775807", "sql_safe_updates": "0", "completion_type": "0"}

// limits matches what the limits on statements can be called in SET.
var limits = regexp.MustCompile(`(?i)max_(?:execution|statement)_time\s*$`)

// autocommit matches what the variable can be called in SET.
var autocommit = regexp.MustCompile(`(?i)^\s*(?:(?:@@)?(?:(?:session|local)(?:\s+|\s*\.\s*))?|@@)autocommit\s*$`)

// sets reports whether the parameters of a DSN set a variable of the session.
func sets(parameters map[string]string, name string) bool {
	for parameter := range parameters {
		if strings.EqualFold(parameter, name) {
			return true
		}
	}
	return false
}
