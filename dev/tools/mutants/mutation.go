package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A mutation breaks the library.
type mutation struct {
	name   string // for -run
	breaks string // what is broken, in one line
	danger string // what may happen to a user
	edits  []edit
}

// An edit replaces a text of a file, which occurs in it exactly once.
type edit struct{ file, old, new string }

// simulation returns the one that shows it.
func (m mutation) simulation() *simulation {
	if strings.HasPrefix(m.edits[0].file, "sync/leader/") {
		return &elections
	}
	return &worlds
}

// apply makes the edits in the module in dir. undo takes them back.
func (m mutation) apply(dir string) (undo func() error, err error) {
	before := make(map[string][]byte)
	undo = func() error {
		var err error
		for path, text := range before {
			err = errors.Join(err, os.WriteFile(path, text, 0o600))
		}
		return err
	}
	for _, e := range m.edits {
		path := filepath.Join(dir, filepath.FromSlash(e.file))
		text, err := os.ReadFile(path) //nolint:gosec // a file of the table
		if err != nil {
			return nil, errors.Join(err, undo())
		}
		if _, known := before[path]; !known {
			before[path] = text
		}
		if n := bytes.Count(text, []byte(e.old)); n != 1 {
			return nil, errors.Join(fmt.Errorf("%s has %d times, not once:\n%s", e.file, n, e.old), undo())
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
			return nil, errors.Join(err, undo())
		}
	}
	return undo, nil
}
