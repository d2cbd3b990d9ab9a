//go:build linux

package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// StartVitess starts an unsharded keyspace of Vitess, with semi-synchronous replication, over Oracle's MySQL: three
// tablets, which are n1 to n3, two vtgates, and a host for etcd, vtctld and vtorc. vtorc, which replaces a primary that
// is gone, looks each second, which is five by default.
//
// The DSN of a vtgate needs no password, that of a tablet leads to its MySQL. The caller closes the cluster.
func StartVitess(ctx context.Context) (*Cluster, error) { return startVitess(ctx, "semi_sync") }

// StartVitessAsynchronous is StartVitess with the durability policy none: a reparent may lose what was acknowledged.
func StartVitessAsynchronous(ctx context.Context) (*Cluster, error) { return startVitess(ctx, "none") }

func startVitess(ctx context.Context, durability string) (*Cluster, error) {
	programs, err := server.FetchOracleMySQL(ctx)
	if err != nil {
		return nil, fmt.Errorf("find Oracle's MySQL: %w", err)
	}
	if err := server.Ensure(ctx, []string{"etcd"}, "etcd-server"); err != nil {
		return nil, fmt.Errorf("find etcd: %w", err)
	}
	bin, err := server.FetchVitess(ctx)
	if err != nil {
		return nil, fmt.Errorf("find Vitess: %w", err)
	}
	return newCluster(ctx, &Cluster{Name: "vitess", Driver: "mysql", engine: vitess{bin, programs, durability}}, tablets+gates+1, 0)
}

// Of the hosts of Vitess the first are tablets, the next ones vtgates, and the last has the topology.
const tablets, gates = 3, 2

// vitess is the engine.
type vitess struct{ bin, mysql, durability string }

// Tablets returns the nodes of Vitess that store the data.
func (c *Cluster) Tablets() []*Node { return c.Nodes[:tablets] }

// Gates returns the nodes of Vitess that clients connect to.
func (c *Cluster) Gates() []*Node { return c.Nodes[tablets : tablets+gates] }

// Topology returns the node of Vitess that has etcd, vtctld and vtorc.
func (c *Cluster) Topology() *Node { return c.Nodes[tablets+gates] }

// vitessUser runs all daemons, which refuse to run as root.
const vitessUser = "daemon"

func (vitess) dsn(n *Node) string {
	if n.role() == "tablet" {
		return fmt.Sprintf("t:t@tcp(%s:3306)/vt_sqllock?timeout=2s", n.IP())
	}
	return fmt.Sprintf("root@tcp(%s:3306)/sqllock?timeout=2s", n.IP())
}

// role returns what the node of Vitess is for, as vitess.sh calls it.
func (n *Node) role() string {
	switch {
	case slices.Contains(n.cluster.Tablets(), n):
		return "tablet"
	case slices.Contains(n.cluster.Gates(), n):
		return "gate"
	default:
		return "topology"
	}
}

// id is the node's number in its alias.
func (n *Node) id() string { return "10" + strings.TrimPrefix(n.Name, "n") }

// vitessDaemons is the script that runs the daemons of a host.
//
//go:embed vitess.sh
var vitessDaemons string

func (v vitess) start(ctx context.Context, n *Node) error {
	if err := v.create(ctx, n); err != nil {
		return err
	}
	return n.run(vitessUser, []string{
		"TOPOLOGY=" + n.cluster.Topology().IP(), "IP=" + n.IP(), "DIR=" + n.dir, "BIN=" + n.path("vitess"), "ID=" + n.id(),
		"MYSQLD=" + strings.Join(v.mysqld(n), " "),
	}, "bash", "-c", vitessDaemons, "vitess", n.role())
}

func (vitess) mysqld(n *Node) []string { return server.OracleMySQLDaemon(n.path("mysql"), n.dir) }

// create makes what a node needs that has never been started, or whose data was removed.
func (v vitess) create(ctx context.Context, n *Node) error {
	if _, err := os.Stat(n.path("vitess")); err != nil {
		for name, programs := range map[string]string{"vitess": v.bin, "mysql": v.mysql} { // the user's cache is closed to other users
			err := errors.Join(
				os.Mkdir(n.path(name), 0o755), //nolint:gosec // servers run as another user
				run(ctx, n.host.inside("", "mount", "--bind", programs, n.path(name))...))
			if err != nil {
				return err
			}
		}
		if err := run(ctx, "chown", vitessUser+":"+vitessUser, n.dir); err != nil {
			return err
		}
	}
	if _, err := os.Stat(n.path("data")); err == nil || n.role() != "tablet" {
		return nil
	}
	template := filepath.Join(n.cluster.Dir(), "template")
	if _, err := os.Stat(template); err != nil {
		accounts := n.path("accounts.sql")
		err := errors.Join(
			os.WriteFile(accounts, []byte(vitessAccounts), 0o644), //nolint:gosec // the server runs as another user
			run(ctx, n.host.inside(vitessUser, append(v.mysqld(n), "--initialize-insecure", "--init-file="+accounts, "--log-error="+n.Log())...)...),
			os.Remove(n.path("data/auto.cnf")),
			os.Rename(n.path("data"), template))
		if err != nil {
			return err
		}
	}
	return run(ctx, "cp", "-a", template, n.path("data"))
}

// vitessAccounts are those that vttablet uses, and that of a tablet's DSN.
const vitessAccounts = `SET sql_log_bin = 0;
CREATE USER vt_dba@localhost; GRANT ALL ON *.* TO vt_dba@localhost WITH GRANT OPTION;
CREATE USER vt_app@localhost; GRANT ALL ON *.* TO vt_app@localhost; REVOKE SUPER, CONNECTION_ADMIN ON *.* FROM vt_app@localhost;
CREATE USER vt_allprivs@localhost; GRANT ALL ON *.* TO vt_allprivs@localhost;
CREATE USER vt_filtered@localhost; GRANT ALL ON *.* TO vt_filtered@localhost;
CREATE USER vt_appdebug@localhost; GRANT SELECT, PROCESS ON *.* TO vt_appdebug@localhost;
CREATE USER vt_repl@'%'; GRANT REPLICATION SLAVE ON *.* TO vt_repl@'%';
CREATE USER t@'%' IDENTIFIED BY 't'; GRANT ALL ON *.* TO t@'%';
`

func (v vitess) bootstrap(ctx context.Context, c *Cluster) error {
	top := c.Topology()
	fresh := top.daemon == nil
	if err := v.start(ctx, top); err != nil {
		return err
	}
	if fresh {
		err := top.await(ctx, func() error { return v.control(ctx, c, "GetKeyspaces") })
		if err == nil {
			err = v.control(ctx, c, "AddCellInfo", "--root=/vitess/zone1", "--server-address="+top.IP()+":2379", "zone1")
		}
		if err == nil {
			err = v.control(ctx, c, "CreateKeyspace", "--durability-policy="+v.durability, "sqllock")
		}
		if err != nil {
			return err
		}
	}
	for _, n := range c.Nodes {
		if n != top {
			if err := v.start(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// control runs a command of an operator.
func (v vitess) control(ctx context.Context, c *Cluster, command ...string) error {
	client := []string{filepath.Join(v.bin, "vtctldclient"), "--server=" + c.Topology().IP() + ":15999", "--action-timeout=30s"}
	return run(ctx, append(client, command...)...)
}

// A shard is what a vtgate sees of the tablets.
type shard struct {
	primary *Node // the one that took over last
	since   time.Time
	serving map[string]string // the types of those that serve, by alias
}

func shardAt(ctx context.Context, gate *Node) (s shard, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	db, err := sqlx.Open("mysql", gate.DSN())
	if err != nil {
		return s, err
	}
	defer db.Close() //nolint:errcheck // it was only read from
	var tablets []struct{ TabletType, Alias, State, PrimaryTermStartTime string }
	db.MapperFunc(func(name string) string { return name })
	if err := db.Unsafe().SelectContext(ctx, &tablets, "SHOW VITESS_TABLETS"); err != nil {
		return s, err
	}
	s.serving = make(map[string]string)
	for _, t := range tablets {
		if t.State != "SERVING" {
			continue
		}
		s.serving[t.Alias] = t.TabletType
		since, err := time.Parse(time.RFC3339, t.PrimaryTermStartTime)
		if t.TabletType == "PRIMARY" && err == nil && !since.Before(s.since) {
			s.primary, s.since = gate.cluster.tabletOf(t.Alias), since
		}
	}
	if s.primary == nil {
		return s, errNoPrimary
	}
	return s, nil
}

var errNoPrimary = errors.New("no tablet is the primary")

func (n *Node) alias() string { return "zone1-0000000" + n.id() }

func (c *Cluster) tabletOf(alias string) *Node {
	return c.Tablets()[slices.IndexFunc(c.Tablets(), func(n *Node) bool { return n.alias() == alias })]
}

// demotion is how long a primary that was replaced may go on thinking that it is one.
const demotion = 20 * time.Second

// join returns all nodes as members if a vtgate knows the primary, and each tablet serves. Vitess leaves two kinds of former
// primaries to an operator, who gives them a copy of the data: one that has transactions which no other tablet has does not
// serve, and one that cannot be demoted, since it waits for a replica to acknowledge a commit, serves as a second primary.
func (v vitess) join(ctx context.Context, n *Node) (members int, err error) {
	c := n.cluster
	members = len(c.Nodes)
	switch n.role() {
	case "topology":
		return members, v.control(ctx, c, "GetKeyspace", "sqllock")
	case "gate":
		_, err := shardAt(ctx, n)
		return members, err
	}
	s, err := shardAt(ctx, c.Gates()[0])
	if err != nil || n == s.primary {
		return members, err
	}
	missing, errant, err := v.compare(ctx, n, s.primary)
	switch kind := s.serving[n.alias()]; {
	case err != nil:
		return 0, err
	case kind == "REPLICA" && missing == "":
		return members, nil
	case kind == "REPLICA":
		return 0, fmt.Errorf("it lacks %s", missing)
	case kind == "PRIMARY" && time.Since(s.since) > demotion, kind != "PRIMARY" && errant != "":
		return 0, errors.Join(fmt.Errorf("it is a former primary that is %q and has %q alone", kind, errant), v.replace(ctx, n, s.primary))
	default:
		return 0, fmt.Errorf("its type is %q", kind)
	}
}

// replace gives a tablet a copy of the data of the primary, as from a backup.
func (v vitess) replace(ctx context.Context, n, primary *Node) error {
	err := n.Kill()
	if err == nil {
		err = run(ctx, "sh", "-c", `rm -rf "$1"/data "$1"/bin.* "$1"/relay*`, "sh", n.dir)
	}
	if err == nil {
		err = v.start(ctx, n)
	}
	if err == nil {
		err = n.awaitLocal(ctx)
	}
	if err != nil {
		return err
	}
	err = execute(ctx, "mysql", n.local(), fmt.Sprintf("SET GLOBAL clone_valid_donor_list = '%s:3306'", primary.IP()),
		fmt.Sprintf("CLONE INSTANCE FROM t@'%s':3306 IDENTIFIED BY 't'", primary.IP()))
	const mustRestart = 3707 // which vitess.sh does
	if number := new(mysql.MySQLError); errors.As(err, &number) && number.Number == mustRestart {
		return nil
	}
	return err
}

// compare returns the transactions that only the primary has, and those that only the tablet has.
func (vitess) compare(ctx context.Context, n, primary *Node) (missing, errant string, err error) {
	const executed = "SELECT @@global.gtid_executed"
	own, err := ask(ctx, "mysql", n.DSN(), executed)
	if err != nil {
		return "", "", err
	}
	all, err := ask(ctx, "mysql", primary.DSN(), executed)
	if err != nil {
		return "", "", err
	}
	difference := func(a, b string) (set string) {
		if err == nil {
			set, err = ask(ctx, "mysql", primary.DSN(), "SELECT GTID_SUBTRACT('"+a+"', '"+b+"')")
		}
		return set
	}
	return difference(all, own), difference(own, all), err
}

func (v vitess) primary(ctx context.Context, c *Cluster) (*Node, error) {
	var failed error
	for _, gate := range c.Gates() {
		s, err := shardAt(ctx, gate)
		if err == nil {
			return s.primary, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func (v vitess) switchOver(ctx context.Context, to *Node) error {
	if to.role() != "tablet" {
		to = to.cluster.Tablets()[0] // vtctld refuses nothing if it is the primary already
	}
	return v.control(ctx, to.cluster, "PlannedReparentShard", "--new-primary="+to.alias(), "sqllock/0")
}

// Vtctld runs a command of an operator of Vitess, as in c.Vtctld(ctx, "EmergencyReparentShard", "sqllock/0").
func (c *Cluster) Vtctld(ctx context.Context, command ...string) error {
	v, ok := c.engine.(vitess)
	if !ok {
		return fmt.Errorf("%s: %w", c.Name, errors.ErrUnsupported)
	}
	return v.control(ctx, c, command...)
}
