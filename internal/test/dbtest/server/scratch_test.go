package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

func newScratch(t *testing.T) *server.Scratch {
	t.Helper()
	s, err := server.NewScratch()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScratchRemovesTheDirectoriesOfDeadProcesses(t *testing.T) {
	parent := t.TempDir()
	t.Setenv(server.ScratchVariable, parent)
	living := newScratch(t)
	// A killed owner leaves the directory and a lock file that is not locked.
	dead := filepath.Join(parent, "sqllock-servers-dead")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "owner.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := newScratch(t)
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the dead owner's directory still exists: %v", err)
	}
	for _, s := range []*server.Scratch{living, other} {
		if _, err := os.Stat(s.Dir); err != nil {
			t.Errorf("a living owner's directory: %v", err)
		}
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
			t.Errorf("a removed directory: %v", err)
		}
	}
}

func TestScratchOnDiskIsAmongTemporaryFiles(t *testing.T) {
	t.Setenv(server.ScratchVariable, t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	s, err := server.NewScratchOnDisk()
	if err != nil {
		t.Fatal(err)
	}
	if parent := filepath.Dir(s.Dir); parent != filepath.Clean(os.TempDir()) {
		t.Errorf("in %s", parent)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
}
