// Overlay writes changed copies of a few files of Go's runtime, and the file that makes
// `go test -overlay` compile them, and prints the path of that file:
//
//	overlay=$(go run ./internal/test/simulation/overlay bin/overlay)
//	go test -overlay="$overlay" ./internal/test/simulation
//
// In a program that is compiled so, what is random in a bubble of testing/synctest is the same in
// each bubble, if the program has one processor (GOMAXPROCS=1): see changes. The toolchain itself
// stays as it is.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("overlay: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: overlay DIRECTORY")
	}
	path, err := write(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(path)
}

// write writes all files to dir. It returns the path of the one for -overlay.
func write(dir string) (string, error) {
	toolchain, err := exec.CommandContext(context.Background(), "go", "env", "GOVERSION", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	lines := strings.Split(string(toolchain), "\n")
	version, root, modules := lines[0], lines[1], lines[2]
	if strings.HasPrefix(root, modules) {
		return "", fmt.Errorf("%s is in the cache of modules, %s, and there go -overlay replaces nothing.\n%s", version, modules, advice)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	replaced := make(map[string]string)
	for _, c := range changes {
		original := filepath.Join(root, "src", "runtime", c.file)
		from := original
		if earlier, ok := replaced[original]; ok {
			from = earlier
		}
		source, err := os.ReadFile(from) //nolint:gosec // of the toolchain
		if err != nil {
			return "", err
		}
		changed, err := c.apply(string(source))
		if err != nil {
			return "", fmt.Errorf("%s does not fit: %w.\n%s", version, err, advice)
		}
		replaced[original] = filepath.Join(dir, c.file+".txt") // it is no package for ./...
		if err := os.WriteFile(replaced[original], []byte(changed), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.MarshalIndent(map[string]any{"Replace": replaced}, "", "\t")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

const advice = `The simulation needs changes to Go's runtime, for seeds to repeat exactly. Install a version of Go that is
known to fit, from https://go.dev/dl/: 1.25.4 and 1.26.8 do. Or adapt internal/test/simulation/overlay/changes.go, whose
comments say what each change is for.`
