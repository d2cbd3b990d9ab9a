//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// StartGroupReplication starts three nodes of Oracle's MySQL with a single primary.
//
// A node is read-only until it is a member (super_read_only=ON in its settings), and is expelled
// five seconds after its last sign of life, which is ten by default. The user of the DSNs is t with
// the password t. The caller closes the cluster.
func StartGroupReplication(ctx context.Context) (*Cluster, error) {
	return startGroupReplication(ctx, false)
}

// StartMultiPrimary is StartGroupReplication with three nodes that take writes.
func StartMultiPrimary(ctx context.Context) (*Cluster, error) {
	return startGroupReplication(ctx, true)
}

func startGroupReplication(ctx context.Context, multi bool) (*Cluster, error) {
	root, err := server.FetchOracleMySQL(ctx)
	if err != nil {
		return nil, fmt.Errorf("find Oracle's MySQL: %w", err)
	}
	return newCluster(ctx, &Cluster{Name: "group-replication", Driver: "mysql", engine: groupReplication{root, multi}}, 3, 0)
}

// groupReplication is the engine.
type groupReplication struct {
	root  string // of the programs and libraries
	multi bool
}

func (groupReplication) dsn(n *Node) string {
	return fmt.Sprintf("t:t@tcp(%s:3306)/sqllock?timeout=2s", n.IP())
}

// server is a DSN without a database.
func (groupReplication) server(n *Node) string {
	return fmt.Sprintf("t:t@tcp(%s:3306)/?timeout=2s", n.IP())
}

// local is a DSN that does not use the network.
func (n *Node) local() string { return fmt.Sprintf("root@unix(%s)/", n.path("s")) }

// serve is the command of a node that can be a member.
func (g groupReplication) serve(n *Node, arguments ...string) []string {
	var seeds []string
	for _, other := range n.cluster.Nodes {
		seeds = append(seeds, other.IP()+":33061")
	}
	onOff := map[bool]string{false: "OFF", true: "ON"}
	return append(append(server.OracleMySQLDaemon(g.root, n.dir),
		"--bind-address="+n.IP(), "--port=3306", "--socket="+n.path("s"), "--pid-file="+n.path("pid"), "--mysqlx=OFF",
		"--skip-name-resolve", "--max-connections=300", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1",
		"--server-id="+strings.TrimPrefix(n.Name, "n"), "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=binlog",
		"--report-host="+n.IP(), "--report-port=3306", "--plugin-load-add=group_replication.so", "--super-read-only=ON",
		"--loose-group_replication_group_name=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
		"--loose-group_replication_start_on_boot=OFF",
		"--loose-group_replication_local_address="+n.IP()+":33061",
		"--loose-group_replication_group_seeds="+strings.Join(seeds, ","),
		"--loose-group_replication_single_primary_mode="+onOff[!g.multi],
		"--loose-group_replication_enforce_update_everywhere_checks="+onOff[g.multi],
		"--loose-group_replication_recovery_get_public_key=ON",
		"--loose-group_replication_ip_allowlist=10.0.0.0/8",
		"--loose-group_replication_member_expel_timeout=0",
		"--loose-group_replication_message_cache_size=134217728",
	), arguments...)
}

func (g groupReplication) start(ctx context.Context, n *Node) error {
	created, err := g.create(ctx, n)
	if err == nil {
		err = g.startWith(n)
	}
	if err == nil {
		err = n.awaitLocal(ctx)
	}
	if err == nil && created {
		err = execute(ctx, "mysql", n.local(), accounts...)
	}
	return err
}

func (g groupReplication) startWith(n *Node, arguments ...string) error {
	for _, left := range []string{"s", "s.lock", "pid"} { // by a node that was killed
		_ = os.Remove(n.path(left)) // it may not be there
	}
	return n.run("", nil, g.serve(n, arguments...)...)
}

// create makes the data of a node that has none. All begin as copies, but for their identity.
func (g groupReplication) create(ctx context.Context, n *Node) (created bool, err error) {
	if _, err := os.Stat(n.path("data")); err == nil {
		return false, nil
	}
	template := filepath.Join(n.cluster.Dir(), "template")
	if _, err := os.Stat(template); err != nil {
		err := errors.Join(
			run(ctx, n.host.inside("", append(server.OracleMySQLDaemon(g.root, n.dir), "--initialize-insecure", "--log-error="+n.Log())...)...),
			os.Remove(n.path("data/auto.cnf")),
			os.Rename(n.path("data"), template))
		if err != nil {
			return false, err
		}
	}
	return true, run(ctx, "cp", "-a", template, n.path("data"))
}

// accounts are made on each node before it is a member.
var accounts = []string{
	"SET GLOBAL super_read_only = OFF", "SET SQL_LOG_BIN = 0",
	"CREATE USER rpl@'%' IDENTIFIED BY 'rpl'",
	"GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO rpl@'%'",
	"CREATE USER t@'%' IDENTIFIED BY 't'", "GRANT ALL ON *.* TO t@'%'", "SET SQL_LOG_BIN = 1",
	"CHANGE REPLICATION SOURCE TO SOURCE_USER='rpl', SOURCE_PASSWORD='rpl' FOR CHANNEL 'group_replication_recovery'",
	"SET GLOBAL super_read_only = ON",
}

// bootstrap starts the group on the node that knows most: the others may lack the last commits.
func (g groupReplication) bootstrap(ctx context.Context, c *Cluster) error {
	_, err := os.Stat(c.Nodes[0].path("data"))
	fresh := err != nil
	first, most := c.Nodes[0], int64(-1)
	for _, n := range c.Nodes {
		if err := g.start(ctx, n); err != nil {
			return err
		}
		known, err := transactions(ctx, n)
		if err != nil {
			return err
		}
		if known > most {
			first, most = n, known
		}
	}
	err = execute(ctx, "mysql", first.local(), "SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION",
		"SET GLOBAL group_replication_bootstrap_group = OFF")
	if err != nil || !fresh {
		return err
	}
	return errors.Join(first.awaitJoined(ctx, 1), execute(ctx, "mysql", first.local(), "CREATE DATABASE sqllock"))
}

// awaitLocal waits until the node answers, be it a member or not.
func (n *Node) awaitLocal(ctx context.Context) error {
	return n.await(ctx, func() error {
		_, err := ask(ctx, "mysql", n.local(), "SELECT 1")
		return err
	})
}

// interval is one of the intervals in a set of transactions.
var interval = regexp.MustCompile(`:(\d+)(?:-(\d+))?`)

// transactions returns how many transactions a node has received.
func transactions(ctx context.Context, n *Node) (count int64, err error) {
	const question = `SELECT GTID_SUBTRACT(CONCAT_WS(',', @@global.gtid_executed, (SELECT NULLIF(received_transaction_set, '')
FROM performance_schema.replication_connection_status WHERE channel_name = 'group_replication_applier')), '')`
	set, err := ask(ctx, "mysql", n.local(), question)
	if err != nil {
		return 0, err
	}
	for _, found := range interval.FindAllStringSubmatch(set, -1) {
		from, _ := strconv.ParseInt(found[1], 10, 64) // it has matched
		to := from
		if found[2] != "" {
			to, _ = strconv.ParseInt(found[2], 10, 64) // it has matched
		}
		count += to - from + 1
	}
	return count, nil
}

// join has a node join again that has left the group, or was never in it.
func (g groupReplication) join(ctx context.Context, n *Node) (members int, err error) {
	const question = `SELECT CONCAT(COUNT(*), ' ', COALESCE(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), 'OFFLINE'), ' ', SUM(MEMBER_STATE = 'ONLINE'))
FROM performance_schema.replication_group_members`
	text, err := ask(ctx, "mysql", g.server(n), question)
	if err != nil {
		return 0, err
	}
	var all int
	var state string
	if _, err := fmt.Sscan(text, &all, &state, &members); err != nil {
		return 0, fmt.Errorf("%q: %w", text, err)
	}
	switch state {
	case "ONLINE":
		return members, nil
	case "OFFLINE", "ERROR":
		limited, cancel := context.WithTimeout(ctx, 70*time.Second)
		defer cancel()
		err = execute(limited, "mysql", g.server(n), "STOP GROUP_REPLICATION", "START GROUP_REPLICATION")
	}
	return 0, errors.Join(fmt.Errorf("its state is %s", state), err)
}

func (g groupReplication) primary(ctx context.Context, c *Cluster) (*Node, error) {
	const question = `SELECT @@global.super_read_only = 0 AND EXISTS (SELECT 1 FROM performance_schema.replication_group_members
WHERE MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE' AND MEMBER_ROLE = 'PRIMARY')`
	var failed error
	for _, n := range c.Nodes {
		answer, err := ask(ctx, "mysql", g.server(n), question)
		if err == nil && answer == "1" {
			return n, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("no node takes writes: %w", failed)
}

func (g groupReplication) switchOver(ctx context.Context, to *Node) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return execute(ctx, "mysql", g.server(to), "SELECT group_replication_set_as_primary(@@server_uuid)")
}

// StartOutside starts a node of Group Replication or of Galera that is down, with further arguments
// under which it takes writes and joins nothing. A node of Galera has forgotten its cluster's identity.
func (n *Node) StartOutside(ctx context.Context, arguments ...string) (err error) {
	switch engine := n.cluster.engine.(type) {
	case groupReplication:
		err = engine.startWith(n, arguments...)
	case galera:
		_ = os.Remove(n.path("data/grastate.dat")) // it may not be there
		err = n.run("mysql", nil, engine.mariadbd(n, arguments...)...)
	default:
		err = fmt.Errorf("%s: %w", n, errors.ErrUnsupported)
	}
	if err != nil {
		return err
	}
	return n.awaitLocal(ctx)
}
