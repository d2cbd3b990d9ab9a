package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestWithDurations(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"go test":                               "go test -json",
		"go test -race ./... -args -c":          "go test -json -race ./... -args -c",
		"/usr/local/go/bin/go1.26 test -v=true": "/usr/local/go/bin/go1.26 test -json -v=true",
		"go -C reliability test -race .":        "go -C reliability test -json -race .",
		"go test -run c -count 1 .":             "go test -json -run c -count 1 .",
		"go test -fuzz ^FuzzKeys$ .":            "",
		"go test --bench=. .":                   "",
		"go test -c .":                          "",
		"go test -json":                         "",
		"go vet test":                           "",
		"go run . test":                         "",
		"make test":                             "",
		"true":                                  "",
	} {
		got, printer := withDurations(strings.Fields(command), io.Discard)
		if want == "" {
			want = command
		} else if printer == nil {
			t.Errorf("%s: no printer", command)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s becomes %q, want %q", command, got, want)
		}
	}
}

func TestDurationsArePrinted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the command is a Unix shell's")
	}
	withOwnServers(t)
	command := filepath.Join(t.TempDir(), "go")
	const script = `#!/bin/sh
test "$*" = "test -json ." || exit 9
echo '{"Action":"pass","Package":"p","Test":"TestSlow","Elapsed":3}'
exit 1
`
	if err := os.WriteFile(command, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	told := stderrOf(t, func() {
		if code := run([]string{"-then", command + " test .", "--", command, "test", "."}); code != 1 {
			t.Errorf("exit code %d, not 1", code)
		}
	})
	if n := strings.Count(told, "3.00 s ! p TestSlow"); n != 2 {
		t.Errorf("the test of both commands is printed %d times in:\n%s", n, told)
	}
}
