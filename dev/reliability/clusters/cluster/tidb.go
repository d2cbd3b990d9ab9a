//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// StartTiDB starts three servers of TiDB, which take writes, and on the hosts of the last two nodes PD and a
// store.
//
// There is no TiKV where packages are. The store is unistore, which TiDB's own tests use, behind TiKV's protocol. It
// loses updates of several servers that commit in one phase or asynchronously, and with fair locking it ends at the
// first commit whose lock it no longer has, so these are switched off. It writes to the disk at each commit.
//
// A server that gives out numbers, and is gone, is replaced after ten seconds. By default it takes sixty once it has
// been without PD for ten.
//
// The user of the DSNs is root, without a password. PD and the store have no DSN. The caller closes the cluster.
func StartTiDB(ctx context.Context) (*Cluster, error) {
	servers, others, err := server.FetchTiDBCluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("find TiDB: %w", err)
	}
	return newCluster(ctx, &Cluster{Name: "tidb-cluster", Driver: "mysql", engine: tidb{servers, others}}, 5, 0)
}

// tidb is the engine.
type tidb struct{ servers, others string } // the directories of their programs

// tidbPorts are those of PD and of the store.
var tidbPorts = map[string]string{"n4": "2379", "n5": "20160"}

func (tidb) dsn(n *Node) string {
	if tidbPorts[n.Name] != "" {
		return ""
	}
	return fmt.Sprintf("root@tcp(%s:4000)/sqllock?timeout=2s", n.IP())
}

// bootstrap starts one server alone the first time, which makes the system's tables.
func (t tidb) bootstrap(ctx context.Context, c *Cluster) error {
	fresh := c.Nodes[0].daemon == nil
	for _, i := range []int{3, 4, 0, 1, 2} {
		n := c.Nodes[i]
		if err := t.start(ctx, n); err != nil {
			return err
		}
		if i >= 3 {
			if err := n.awaitJoined(ctx, 1); err != nil {
				return err
			}
		}
		if i == 0 && fresh {
			if err := t.prepare(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare makes the database as soon as the server answers.
func (tidb) prepare(ctx context.Context, n *Node) error {
	dsn := fmt.Sprintf("root@tcp(%s:4000)/", n.IP())
	return errors.Join(
		n.await(ctx, func() error {
			_, err := ask(ctx, "mysql", dsn, "SELECT 1")
			return err
		}),
		execute(ctx, "mysql", dsn, "SET GLOBAL tidb_enable_async_commit = OFF", "SET GLOBAL tidb_enable_1pc = OFF",
			"SET GLOBAL tidb_pessimistic_txn_fair_locking = OFF", "CREATE DATABASE sqllock", "CREATE TABLE sqllock.joined (name VARCHAR(9) PRIMARY KEY, n INT)"))
}

func (t tidb) start(_ context.Context, n *Node) error {
	pd := n.cluster.Nodes[3].IP() + ":2379"
	switch n.Name {
	case "n4":
		peer := "http://" + n.IP() + ":2380"
		return n.run("", nil, filepath.Join(t.others, "pd-server"), "--name=pd", "--data-dir="+n.path("data"), "--log-level=warn",
			"--client-urls=http://"+pd, "--peer-urls="+peer)
	case "n5":
		return n.run("", nil, filepath.Join(t.others, "store-server"), "-pd", pd, "-addr", n.IP()+":20160", "-db", n.path("data"))
	default:
		return n.run("", []string{"tidb_manager_ttl=10"}, filepath.Join(t.servers, "tidb-server"), "--store=tikv", "--path="+pd, "--host="+n.IP(),
			"--advertise-address="+n.IP(), "--socket=", "--temp-dir="+n.path("tmp"), "--log-slow-query="+n.path("slow.log"), "-L=warn")
	}
}

// join has a server write, for which PD and the store must answer it, and asks it for the settings.
func (t tidb) join(ctx context.Context, n *Node) (members int, err error) {
	members = len(n.cluster.Nodes)
	if port := tidbPorts[n.Name]; port != "" {
		conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", n.IP()+":"+port)
		if err != nil {
			return 0, err
		}
		return members, conn.Close()
	}
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := execute(limited, "mysql", n.DSN(), fmt.Sprintf("INSERT INTO joined VALUES ('%s', 1) ON DUPLICATE KEY UPDATE n = n + 1", n.Name)); err != nil {
		return 0, err
	}
	answer, err := ask(ctx, "mysql", n.DSN(), fmt.Sprintf("SELECT @@tidb_enable_1pc + @@tidb_enable_async_commit + @@tidb_pessimistic_txn_fair_locking FROM joined WHERE name = '%s'", n.Name))
	if err == nil && answer != "0" {
		err = errors.New("it does not have the settings yet")
	}
	return members, err
}

func (tidb) primary(context.Context, *Cluster) (*Node, error) {
	return nil, fmt.Errorf("all servers of TiDB take writes: %w", errors.ErrUnsupported)
}

func (t tidb) switchOver(ctx context.Context, to *Node) error {
	_, err := t.primary(ctx, to.cluster)
	return err
}
