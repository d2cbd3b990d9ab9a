// Package report turns raw data into the tables and plots of a document. They
// stand between markers, so that the prose around them is written by hand.
package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// ErrMarker is returned for a document that lacks an end marker.
var ErrMarker = errors.New("a section has no end")

func begin(section string) string { return "<!-- bench:" + section + " -->" }

const end = "<!-- /bench -->"

// Write fills the sections that a document has, and draws its plots into pictures, a directory.
func Write(f *record.File, document, pictures string) error {
	plot.DefaultFont.Variant = "Sans"                    // about as wide as what browsers have in its place
	if err := os.MkdirAll(pictures, 0o755); err != nil { //nolint:gosec // for everyone to read
		return err
	}
	beside, err := filepath.Rel(filepath.Dir(document), pictures)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	filled := string(text)
	for _, s := range sections {
		content, err := s.make(f, pictures, filepath.ToSlash(beside))
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if filled, err = fill(filled, s.name, content); err != nil {
			return err
		}
	}
	return os.WriteFile(document, []byte(filled), 0o644) //nolint:gosec // for everyone to read
}

// fill replaces what stands between the markers of a section.
func fill(document, section, content string) (string, error) {
	before, rest, found := strings.Cut(document, begin(section))
	if !found {
		return document, nil
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("%w: %s", ErrMarker, section)
	}
	return before + begin(section) + "\n" + strings.TrimSpace(content) + "\n" + end + after, nil
}
