// Command fencedfiles writes to a storage outside of the database. A holder that was stopped for
// longer than its lease writes late: its fencing token is lower, so the storage refuses it.
//
//	go run ./fencedfiles
//
// It prints:
//
//	the second holder writes: <nil>
//	the first holder writes late: refused: a later holder has written report.txt
//	the file says: written by the second
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

// A storage keeps files, and for each the highest token that has written it. The token must be
// checked where the file is written, by the one process that writes it.
type storage struct {
	mu  sync.Mutex
	dir string
}

// put writes a file, unless a later holder of its lock has written it.
func (s *storage) put(name string, token int64, content string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.dir, name)
	var highest int64
	if text, err := os.ReadFile(path + ".token"); err == nil {
		if _, err := fmt.Sscan(string(text), &highest); err != nil {
			return err
		}
	} else if !os.IsNotExist(err) {
		return err
	}
	if token < highest {
		return fmt.Errorf("refused: a later holder has written %s", name)
	}
	// The token first: after a crash in between, an older holder is refused all the same.
	if err := os.WriteFile(path+".token", fmt.Append(nil, token), 0o600); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	registry, err := sqlitelock.Open(ctx, filepath.Join(dir, "locks.db"), &sqlitelock.Options{
		Registry: sqllock.RegistryOptions{TTL: time.Second},
		NoRenew:  true, // a process that has stopped renews nothing
	})
	if err != nil {
		return err
	}
	defer registry.Close(ctx)
	files := &storage{dir: dir}

	first, err := registry.Lock(ctx, "report.txt")
	if err != nil {
		return err
	}
	defer first.Unlock(ctx)
	<-first.Context().Done() // the first holder stops for longer than its lease

	second, err := registry.Lock(ctx, "report.txt")
	if err != nil {
		return err
	}
	defer second.Unlock(ctx)
	fmt.Println("the second holder writes:", files.put("report.txt", second.Token(), "written by the second"))
	fmt.Println("the first holder writes late:", files.put("report.txt", first.Token(), "written by the first"))
	content, err := os.ReadFile(filepath.Join(dir, "report.txt"))
	fmt.Println("the file says:", string(content))
	return err
}
