// Package report collects from all processes of a test run what was tested on which database.
// Test programs append cells to a file, and the program that has started them prints them as
// a table.
package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Variable holds the path of the file. Without it there is no report.
const Variable = "SQLLOCK_TEST_REPORT"

// A Cell is the result of the tests for one combination of database, driver and settings.
type Cell struct {
	// The combination. Fields that do not apply are empty.
	Server, Version, Driver, Layout, Isolation, Settings string
	// Run counts the tests that ran, including Failed, the tests that failed. Skipped
	// counts the tests that did not run.
	Run, Failed, Skipped int
	// Reason is why tests were skipped.
	Reason string
}

// A Report is what a file contains.
type Report struct {
	Cells []Cell
	// Notes are lines about the choice of cells.
	Notes []string
}

// A line of the file is a cell or, if Note is not empty, a note.
type line struct {
	Cell
	Note string `json:",omitempty"`
}

// Append adds a cell to the file in a single write, so several processes can append at the
// same time.
func Append(path string, cell Cell) error { return line{Cell: cell}.append(path) }

// AppendNote is [Append] for a note.
func AppendNote(path, note string) error { return line{Note: note}.append(path) }

func (l line) append(path string) (err error) {
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(append(line, '\n'))
	return err
}

// Read returns the cells of the file in the order of the combinations, and each note once. If there is no file, it returns none.
func Read(path string) (Report, error) {
	var all Report
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, err
	}
	defer file.Close() //nolint:errcheck // it has been read only
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return all, fmt.Errorf("%s: %w", path, err)
		}
		switch {
		case l.Note == "":
			all.Cells = append(all.Cells, l.Cell)
		case !slices.Contains(all.Notes, l.Note):
			all.Notes = append(all.Notes, l.Note)
		}
	}
	slices.SortFunc(all.Cells, func(a, b Cell) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all, lines.Err()
}

// Print writes the cells as a table with their sum, and the notes below it. Without cells it
// writes nothing.
func Print(w io.Writer, r Report) error {
	if len(r.Cells) == 0 {
		return nil
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Format.Footer = text.FormatDefault
	t.SetColumnConfigs([]table.ColumnConfig{{Name: "reason", WidthMax: 60}})
	t.AppendHeader(table.Row{"server", "version", "driver", "layout", "isolation", "settings", "run", "failed", "skipped", "reason"})
	var sum Cell
	for _, c := range r.Cells {
		t.AppendRow(table.Row{c.Server, c.Version, c.Driver, c.Layout, c.Isolation, c.Settings, c.Run, c.Failed, c.Skipped, c.Reason})
		sum.Run += c.Run
		sum.Failed += c.Failed
		sum.Skipped += c.Skipped
	}
	t.AppendFooter(table.Row{fmt.Sprintf("%d cells", len(r.Cells)), "", "", "", "", "", sum.Run, sum.Failed, sum.Skipped, ""})
	_, err := fmt.Fprintln(w, strings.Join(append([]string{t.Render()}, r.Notes...), "\n"))
	return err
}
