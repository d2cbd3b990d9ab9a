package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// fakeBinary is a binary of which only the packaging counts.
func fakeBinary(t *testing.T, system string) binary {
	t.Helper()
	dir := t.TempDir()
	when := time.Date(2026, 1, 31, 2, 0, 0, 0, time.UTC)
	if err := writePages(dir, when); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "program")
	if err := os.WriteFile(path, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	info := &buildinfo.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/sqllock/sqllock", Version: "v0.1.0"},
		Deps: []*debug.Module{{Path: "example.com/a", Version: "v1.2.3"}},
	}
	return binary{system: system, arch: "arm64", path: path, info: info, version: "0.1.0", when: when, pages: dir, root: "../../.."}
}

func TestFiles(t *testing.T) {
	for system, want := range map[string]string{
		"linux":   "sqllock-0.1.0-1.aarch64.rpm sqllock_0.1.0_arm64.deb sqllock_0.1.0_linux_arm64.cdx.json sqllock_0.1.0_linux_arm64.tar.gz",
		"darwin":  "sqllock_0.1.0_darwin_arm64.cdx.json sqllock_0.1.0_darwin_arm64.tar.gz",
		"windows": "sqllock_0.1.0_windows_arm64.cdx.json sqllock_0.1.0_windows_arm64.zip",
	} {
		t.Run(system, func(t *testing.T) {
			files := written(t, fakeBinary(t, system))
			again := written(t, fakeBinary(t, system))
			var names []string
			for _, name := range strings.Fields(want) {
				names = append(names, name)
				if len(files[name]) == 0 {
					t.Errorf("%s is missing", name)
				}
				if !bytes.Equal(files[name], again[name]) {
					t.Errorf("%s is different each time", name)
				}
				if sum := fmt.Sprintf("%x  %s\n", sha256.Sum256(files[name]), name); !strings.Contains(string(files["checksums.txt"]), sum) {
					t.Errorf("checksums.txt has no line %s", sum)
				}
			}
			if len(files) != len(names)+1 {
				t.Errorf("%d files, want %v and checksums.txt", len(files), names)
			}
		})
	}
}

// written returns the files of a binary.
func written(t *testing.T, b binary) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	if err := b.writeFiles(out); err != nil {
		t.Fatal(err)
	}
	if err := writeChecksums(out); err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(out, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestMembers(t *testing.T) {
	members, err := fakeBinary(t, "windows").members()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range members {
		names = append(names, m.path)
	}
	all := strings.Join(names, " ")
	for _, want := range []string{"sqllock.exe", "LICENSE", "completions/_sqllock", "completions/sqllock.ps1", "man/sqllock.1", "man/sqllock-migrate-up.1"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
}

func TestSBOM(t *testing.T) {
	var list bom
	if err := json.Unmarshal(written(t, fakeBinary(t, "darwin"))["sqllock_0.1.0_darwin_arm64.cdx.json"], &list); err != nil {
		t.Fatal(err)
	}
	if list.Format != "CycloneDX" || len(list.Components) != 2 || list.Components[1].PURL != "pkg:golang/example.com/a@v1.2.3" {
		t.Errorf("%+v", list)
	}
}

// A shell reads the completions without an error. Which shells there are depends on the machine.
func TestCompletionsAreScripts(t *testing.T) {
	dir := t.TempDir()
	if err := writePages(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	for shell, file := range map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		if out, err := exec.CommandContext(t.Context(), path, "-n", filepath.Join(dir, file)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}
