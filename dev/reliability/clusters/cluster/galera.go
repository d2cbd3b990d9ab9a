//go:build linux

package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of Node.DSN

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// StartGalera starts three nodes of MariaDB with Galera, which write to the disk at each commit.
// Each of them takes writes. A node suspects another after two seconds of silence, which is five by
// default, and may lag behind by 500 transactions before it slows the others down, not 16.
//
// The user of the DSNs is t with the password t. The caller closes the cluster.
func StartGalera(ctx context.Context) (*Cluster, error) {
	return newGalera(ctx, galera{})
}

// StartGaleraNewest is StartGalera with MariaDB's newest long-term series, 11.8, whose programs are downloaded once
// from Debian's suite trixie.
func StartGaleraNewest(ctx context.Context) (*Cluster, error) {
	root, err := server.FetchGaleraNewest(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the newest Galera: %w", err)
	}
	return newGalera(ctx, galera{root: root})
}

func newGalera(ctx context.Context, engine galera) (*Cluster, error) {
	if err := server.Ensure(ctx, []string{"mariadbd", "mariadb-install-db", "rsync", "socat", "lsof"},
		"mariadb-server", "galera-4", "rsync", "socat", "lsof", "iproute2"); err != nil {
		return nil, fmt.Errorf("find Galera: %w", err)
	}
	if _, err := os.Stat(galeraProvider); err != nil {
		// MariaDB's server alone may have been installed before.
		if err := server.Ensure(ctx, []string{"garbd", "galera_new_cluster"}, "mariadb-server", "galera-4"); err != nil {
			return nil, fmt.Errorf("find Galera: %w", err)
		}
	}
	return newCluster(ctx, &Cluster{Name: "galera", Driver: "mysql", engine: engine}, 3, 0)
}

// StartGaleraWithClocks is StartGalera with nodes whose clocks [Node.SetClock] sets.
func StartGaleraWithClocks(ctx context.Context) (*Cluster, error) {
	if err := server.Ensure(ctx, []string{"faketime"}, "faketime"); err != nil {
		return nil, fmt.Errorf("find libfaketime: %w", err)
	}
	return newGalera(ctx, galera{clocks: true})
}

const galeraProvider = "/usr/lib/galera/libgalera_smm.so"

// galera is the engine.
type galera struct {
	clocks bool
	root   string // of the programs and libraries; "" is this machine's
}

// mounted is where a node has the programs of root: its user may not pass the directories above that.
const mounted = "/mnt"

// mountGalera leaves nothing in usr/bin but the scripts that copy a node's data. The server looks there first for the
// programs that these run, but they are this machine's: those beside them need other libraries than it has, and a
// script does not recognise an rsync that is run by way of the loader.
const mountGalera = `mount --bind "$0" "$1"
mkdir "$2"
cp "$1"/usr/bin/wsrep_sst_* "$2"
mount --bind "$2" "$1/usr/bin"`

// mariadbd is the command of a node.
func (g galera) mariadbd(n *Node, arguments ...string) []string {
	command := []string{"mariadbd", "--defaults-file=" + n.path("my.cnf")}
	if g.root != "" {
		command = server.MariaDBDaemon(mounted, command[1:]...)
	}
	return append(command, arguments...)
}

// fakeClock is the environment of a server whose clock, but not its timers, is off by what the file
// says.
func (n *Node) fakeClock() []string {
	return []string{
		"LD_PRELOAD=/usr/$LIB/faketime/libfaketimeMT.so.1", "FAKETIME_TIMESTAMP_FILE=" + n.path("clock"),
		"FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
}

// SetClock lets the node's clock differ from the others' within about a second. It is for the nodes of
// [StartGaleraWithClocks].
func (n *Node) SetClock(offset time.Duration) error {
	return os.WriteFile(n.path("clock"), fmt.Appendf(nil, "%+f\n", offset.Seconds()), 0o644) //nolint:gosec // the server runs as another user
}

func (galera) dsn(n *Node) string {
	return fmt.Sprintf("t:t@tcp(%s:3306)/sqllock?timeout=2s", n.IP())
}

// galeraSettings are the file my.cnf: directory, address, name, all addresses, and the library.
//
//go:embed galera.cnf
var galeraSettings string

// bootstrap starts the node that knows most first: the others may lack the last commits.
func (g galera) bootstrap(ctx context.Context, c *Cluster) error {
	first, most := c.Nodes[0], int64(-1)
	fresh := false
	for _, n := range c.Nodes {
		created, err := g.create(ctx, n)
		if err != nil {
			return err
		}
		fresh = fresh || created
		if _, position, err := g.recover(ctx, n); err != nil {
			return err
		} else if position > most {
			first, most = n, position
		}
	}
	if err := g.allowBootstrap(first); err != nil {
		return err
	}
	if err := g.startWith(ctx, first, "--wsrep-new-cluster"); err != nil {
		return err
	}
	root := fmt.Sprintf("root@unix(%s)/", first.path("s"))
	if err := first.awaitSynced(ctx, root); err != nil {
		return err
	}
	if fresh {
		if err := execute(ctx, "mysql", root, "CREATE DATABASE sqllock", "CREATE USER t@'%' IDENTIFIED BY 't'", "GRANT ALL ON *.* TO t@'%'"); err != nil {
			return err
		}
	}
	for _, n := range c.Nodes {
		if n == first {
			continue
		}
		if err := n.Start(ctx); err != nil { // one after the other: a donor serves one
			return err
		}
	}
	return nil
}

// create makes the data of a node that has none.
func (g galera) create(ctx context.Context, n *Node) (created bool, err error) {
	if _, err := os.Stat(n.path("data")); err == nil {
		return false, nil
	}
	var all []string
	for _, other := range n.cluster.Nodes {
		all = append(all, other.IP())
	}
	provider := galeraProvider
	// Temporary tables are named after the process, and those of two hosts may have one number.
	data := []string{"--no-defaults", "--datadir=" + n.path("data"), "--tmpdir=" + n.dir, "--innodb-log-file-size=16M"}
	install := slices.Concat([]string{"mariadb-install-db"}, data, []string{"--auth-root-authentication-method=normal", "--skip-test-db"})
	if g.root != "" {
		provider = mounted + "/usr/lib/galera/libgalera_smm.so"
		install = server.CreateMariaDB(mounted, n.path("data"), server.MariaDBDaemon(mounted, data...))
		err = run(ctx, n.host.inside("", "sh", "-ec", mountGalera, g.root, mounted, n.path("sst"))...)
	}
	settings := fmt.Sprintf(galeraSettings, n.dir, n.IP(), n.Name, strings.Join(all, ","), provider)
	return true, errors.Join(
		err,
		os.WriteFile(n.path("my.cnf"), []byte(settings), 0o644), //nolint:gosec // the server runs as another user
		n.SetClock(0),
		// Not as root: the program that copies a node's data then drops its rights and cannot write.
		run(ctx, "chown", "mysql:mysql", n.dir),
		run(ctx, n.host.inside("mysql", install...)...))
}

// recovered is the line with which a node tells the position of its last commit.
var recovered = regexp.MustCompile(`Recovered position: ([0-9a-f-]+:(-?\d+))`)

// recover returns the position of the last commit on a node's disk.
func (g galera) recover(ctx context.Context, n *Node) (position string, number int64, err error) {
	log := n.path("recover.log")
	_ = os.Remove(log) // it may not be there
	err = run(ctx, n.host.inside("mysql", g.mariadbd(n, "--wsrep-recover", "--log-error="+log)...)...)
	if err != nil {
		return "", 0, err
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return "", 0, err
	}
	found := recovered.FindSubmatch(text)
	if found == nil {
		return "", 0, fmt.Errorf("%s tells no position: %s", n, text)
	}
	number, err = strconv.ParseInt(string(found[2]), 10, 64)
	return string(found[1]), number, err
}

// allowBootstrap does what an operator does after a full stop.
func (galera) allowBootstrap(n *Node) error {
	path := n.path("data/grastate.dat")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was never started
	}
	if err != nil {
		return err
	}
	allowed := strings.Replace(string(text), "safe_to_bootstrap: 0", "safe_to_bootstrap: 1", 1)
	return os.WriteFile(path, []byte(allowed), 0o600)
}

func (g galera) start(ctx context.Context, n *Node) error { return g.startWith(ctx, n) }

// startWith starts a node where its last commit is, so that it need not copy everything.
func (g galera) startWith(ctx context.Context, n *Node, arguments ...string) error {
	position, number, err := g.recover(ctx, n)
	if err != nil {
		return err
	}
	if number >= 0 {
		arguments = append(arguments, "--wsrep-start-position="+position)
	}
	command := g.mariadbd(n, arguments...)
	if g.clocks {
		command = append(append([]string{"env"}, n.fakeClock()...), command...)
	}
	return n.run("mysql", nil, command...)
}

func (g galera) join(ctx context.Context, n *Node) (members int, err error) {
	return synced(ctx, g.dsn(n))
}

func (galera) primary(context.Context, *Cluster) (*Node, error) {
	return nil, fmt.Errorf("all nodes of Galera take writes: %w", errors.ErrUnsupported)
}

func (g galera) switchOver(ctx context.Context, to *Node) error {
	_, err := g.primary(ctx, to.cluster)
	return err
}

// synced returns how many nodes the component of a node has, if the node is up to date.
func synced(ctx context.Context, dsn string) (members int, err error) {
	const question = `SELECT GROUP_CONCAT(variable_value ORDER BY variable_name) FROM information_schema.global_status
WHERE variable_name IN ('wsrep_cluster_size', 'wsrep_local_state_comment', 'wsrep_ready')`
	state, err := ask(ctx, "mysql", dsn, question)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(state, "%d,Synced,ON", &members); err != nil {
		return 0, fmt.Errorf("its state is %q", state)
	}
	return members, nil
}

// awaitSynced waits for a node that may be the only one.
func (n *Node) awaitSynced(ctx context.Context, dsn string) error {
	return n.await(ctx, func() error {
		_, err := synced(ctx, dsn)
		return err
	})
}
