package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed mutants.txt
var mutants string

// mutations are those of mutants.txt.
var mutations = parse(mutants)

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
	switch file := m.edits[0].file; {
	case strings.HasPrefix(file, "sync/leader/"):
		return &elections
	case strings.HasPrefix(file, "internal/bell/"):
		return &bells
	default:
		return &worlds
	}
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

// parse reads mutations. It panics at a line that none has.
func parse(text string) (all []mutation) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		if word == "mutant" {
			all = append(all, mutation{name: rest})
		}
		if line == "" || word == "#" || word == "mutant" {
			continue
		}
		m := &all[len(all)-1]
		switch {
		case word == "breaks":
			m.breaks = rest
		case word == "danger":
			m.danger = rest
		case word == "file":
			m.edits = append(m.edits, edit{file: rest})
		default:
			m.edits[len(m.edits)-1].add(line)
		}
	}
	return all
}

// add adds a line to the text that is replaced, or to the one that replaces it.
func (e *edit) add(line string) {
	text := &e.old
	switch line[0] {
	case '-':
	case '+':
		text = &e.new
	default:
		panic("mutants.txt: " + line)
	}
	if *text != "" {
		*text += "\n"
	}
	*text += line[1:]
}
