package main

import (
	"fmt"
	"os"
	"strings"
)

// A table has the seeds of the worlds that catch each mutant, by its name.
type table map[string][]int

func readTable(path string) (table, error) {
	text, err := os.ReadFile(path) //nolint:gosec // of the module
	if err != nil {
		return nil, err
	}
	t := make(table)
	for line := range strings.Lines(string(text)) {
		name, seeds, _ := strings.Cut(strings.TrimSpace(line), " ")
		t[name] = nil
		for field := range strings.FieldsSeq(seeds) {
			var seed int
			if _, err := fmt.Sscan(field, &seed); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", path, name, err)
			}
			t[name] = append(t[name], seed)
		}
	}
	return t, nil
}

// write writes the table to a file, in the order of the mutations.
func (t table) write(path string) error {
	text := ""
	for _, m := range mutations {
		if seeds := t[m.name]; len(seeds) > 0 {
			text += m.name + " " + joined(seeds, " ") + "\n"
		}
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// joined writes seeds with a separator between them.
func joined(seeds []int, separator string) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(seeds), "[]"), " ", separator)
}
