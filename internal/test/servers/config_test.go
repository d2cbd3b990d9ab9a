package servers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// servers are those of the driver.
var servers = dbtest.Databases{"MariaDB": dbtest.MySQL, "Oracle's MySQL": dbtest.OracleMySQL}

// TestOpenConfig has only BeforeConnect know the password. All connections call it.
func TestOpenConfig(t *testing.T) {
	t.Parallel()
	servers.Each(t, func(t *testing.T, db *dbtest.DB) {
		config := check.Value(mysql.ParseDSN(db.DSN))(t)
		password := config.Passwd
		config.Passwd, config.Loc = "wrong", nil
		var before atomic.Int64
		check.Must(t, config.Apply(mysql.BeforeConnect(func(_ context.Context, c *mysql.Config) error {
			before.Add(1)
			c.Passwd = password
			return nil
		})))
		registry := check.Value(mysqllock.OpenConfig(t.Context(), config, &mysqllock.Options{Migrate: migrations.Up}))(t)
		defer registry.Close(context.WithoutCancel(t.Context()))
		config.DBName = "it was copied"
		lease := check.Value(registry.Lock(t.Context(), "k"))(t)
		if lease.Token() == 0 || time.Until(lease.Deadline()) <= 0 {
			t.Error(lease.Token(), lease.Deadline())
		}
		var named int
		check.Must(t, db.DB.GetContext(t.Context(), &named, "SELECT count(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()"))
		if n := before.Load(); n < int64(named) || named == 0 {
			t.Errorf("%d connections, BeforeConnect was called %d times", named, n)
		}
		check.Must(t, lease.Unlock(t.Context()))
	})
}

func TestOpenConfig_Invalid(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]*mysql.Config{"nil": nil, "no database": mysql.NewConfig(), "unknown TLS": {DBName: "app", TLSConfig: "unknown"}} {
		_, err := mysqllock.OpenConfig(t.Context(), bad, nil)
		if !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	errToken := errors.New("no token")
	config := check.Value(mysql.ParseDSN("app@tcp(127.0.0.1:1)/app"))(t)
	check.Must(t, config.Apply(mysql.BeforeConnect(func(context.Context, *mysql.Config) error { return errToken })))
	_, err := mysqllock.OpenConfig(t.Context(), config, nil)
	check.Is(t, err, sqllock.ErrDatabase)
	check.Contains(t, err.Error(), "connect to mysql://app@127.0.0.1:1/app", "no token")
}
