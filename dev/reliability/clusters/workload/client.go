//go:build linux

package workload

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/drivers/pqlock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

// A client is how a process uses sqllock.
type client struct {
	// opened has Open of the driver's package make the pools: its sessions, messages of several statements, and
	// prepared statements. Otherwise the repository is over a pool of the application's.
	opened bool
	// fair has callers acquire in the order of arrival, if [Config.Fair] allows that.
	fair bool
	// waits has calls wait through outages.
	waits bool
	// nameless has no names written.
	nameless bool
}

// clients are those of the processes, by their places.
var clients = []client{
	{waits: true},
	{opened: true},
	{opened: true, fair: true, waits: true},
	{fair: true},
	{opened: true, nameless: true, waits: true},
	{opened: true, fair: true},
}

// client returns what the process of a task is. The negative controls use what they are
// about: pools that ask no server.
func (t task) client() client {
	c := clients[t.Process%len(clients)]
	c.opened = c.opened && !t.Config.Unaware
	c.fair = c.fair && t.Config.Fair
	return c
}

// IsOpened reports whether a lease, or the ID of an acquisition that failed, is of a process
// whose pools are those of Open.
func (c Config) IsOpened(lease string) bool {
	var t task
	_, err := fmt.Sscanf(lease, "%d.%d.", &t.Process, &t.Life)
	t.Config = c
	return err == nil && t.client().opened
}

// connect makes one attempt to open the registry.
func (w *worker) connect(ctx context.Context) (*sqllock.Registry, error) {
	c, options := w.client(), w.Config.Repository()
	settings := sqllock.RegistryOptions{
		TTL: w.Config.TTL, MaxHold: w.Config.MaxHold, WaitThroughOutages: c.waits, Fair: c.fair, DisableNames: c.nameless,
	}
	if c.opened {
		return w.Config.Target.openRegistry(ctx, w.Process, *options, settings)
	}
	repository, err := sqllock.NewRepository(ctx, w.locks.DB, w.Config.Target.Dialect(), options)
	if err != nil {
		return nil, err
	}
	return sqllock.NewRegistry(repository, &settings)
}

// openRegistry returns a registry by Open of the driver's package.
func (t Target) openRegistry(ctx context.Context, process int, repository sqllock.RepositoryOptions, registry sqllock.RegistryOptions) (*sqllock.Registry, error) {
	dsn := t.DSNs[process%len(t.DSNs)]
	switch t.Driver {
	case "mysql":
		if t.Choice == Random || t.Choice == Primary {
			t.dialOnce()
			dsn = anyOf(dsn)
		}
		if t.Engine == "TiDB" {
			dsn = "tidb://" + dsn
		}
		return mysqllock.Open(ctx, dsn, &mysqllock.Options{Repository: repository, Registry: registry})
	case "pgx":
		return pgxlock.Open(ctx, dsn, &pgxlock.Options{Repository: repository, Registry: registry})
	case "sqlite":
		return sqlitelock.Open(ctx, dsn, &sqlitelock.Options{Repository: repository, Registry: registry})
	default:
		return pqlock.Open(ctx, dsn, &pqlock.Options{Repository: repository, Registry: registry})
	}
}

// anyNode is the host of a DSN that stands for all nodes, as a proxy or a name with several addresses does.
const anyNode = "any.invalid"

var address = regexp.MustCompile(`@tcp\(.*?:`)

// anyOf returns a DSN that leads to one of the nodes each time.
func anyOf(dsn string) string { return address.ReplaceAllString(dsn, "@tcp("+anyNode+":") }

var dialing sync.Once

// dialOnce has the driver know the host of all nodes. A process has one target.
func (t Target) dialOnce() {
	dialing.Do(func() {
		mysql.RegisterDialContext("tcp", func(ctx context.Context, address string) (net.Conn, error) {
			if strings.HasPrefix(address, anyNode) {
				var err error
				if address, err = t.choose(ctx); err != nil {
					return nil, err
				}
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		})
	})
}

// choose returns the address of a node to which a connection has led.
func (t Target) choose(ctx context.Context) (string, error) {
	several, err := t.connector()
	if err != nil {
		return "", err
	}
	i, conn, err := several.choose(ctx)
	if err != nil {
		return "", err
	}
	_ = conn.Close() // it was not used
	config, err := mysql.ParseDSN(t.DSNs[i])
	if err != nil {
		return "", err
	}
	return config.Addr, nil
}
