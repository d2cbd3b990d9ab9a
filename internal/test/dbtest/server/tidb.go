package server

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
)

//go:embed fetch_tidb.sh
var fetchTiDB string

// tidbStore is the source of a store. It is no package here, because it needs TiDB's modules.
//
//go:embed tidb_store.go.txt
var tidbStore string

// fetchTiDBServer returns the directory of tidb-server, which is built once into the user's cache.
func fetchTiDBServer(ctx context.Context) (dir string, err error) {
	return fetched(ctx, "tidb-20251126", fetchTiDB)
}

// FetchTiDBCluster returns the directory of tidb-server, and that of pd-server and store-server, which several
// servers need. The store is a substitute for TiKV. All are built once.
func FetchTiDBCluster(ctx context.Context) (servers, others string, err error) {
	if servers, err = fetchTiDBServer(ctx); err != nil {
		return "", "", err
	}
	others, err = fetched(ctx, "tidb-cluster-20251126", fetchTiDB, tidbStore)
	return servers, others, err
}

// StartTiDB starts one server of TiDB, which keeps its data in dir by the storage of TiDB's own tests.
func StartTiDB(ctx context.Context, dir string) (*Server, error) {
	root, err := fetchTiDBServer(ctx)
	if err != nil {
		return nil, fmt.Errorf("build TiDB: %w", err)
	}
	return Start(ctx, Recipe{
		Name:   TiDB,
		Driver: "mysql",
		Serve: func(dir string, port int) []string {
			return []string{
				filepath.Join(root, "tidb-server"), "--store=unistore", "--path=" + filepath.Join(dir, "data"), "--temp-dir=" + filepath.Join(dir, "tmp"),
				"--host=127.0.0.1", "--advertise-address=127.0.0.1", "-P", strconv.Itoa(port), "--report-status=false", "--socket=", "-L=error",
			}
		},
		DSN:      func(port int) string { return fmt.Sprintf("root@tcp(127.0.0.1:%d)/test", port) },
		Quit:     syscall.SIGKILL, // it would wait for its clients
		Orphaned: syscall.SIGKILL,
	}, dir)
}
