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

// StartTiDB starts one server of TiDB, which keeps its data in dir by the storage of TiDB's own tests. It is
// built once into the user's cache.
func StartTiDB(ctx context.Context, dir string) (*Server, error) {
	root, err := fetched(ctx, "tidb-20251126", fetchTiDB)
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
