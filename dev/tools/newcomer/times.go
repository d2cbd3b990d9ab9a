//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// times are the real time and the processor time of a command and all of its children.
type times struct{ wall, cpu time.Duration }

func (t times) plus(other times) times { return times{t.wall + other.wall, t.cpu + other.cpu} }

func (t times) String() string {
	return fmt.Sprintf("%.1f s, %.1f s", t.wall.Seconds(), t.cpu.Seconds())
}

func measured(cmd *exec.Cmd) (took times, output string, err error) {
	began := time.Now()
	text, err := cmd.CombinedOutput()
	took.wall = time.Since(began)
	if cmd.ProcessState != nil {
		took.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return took, string(text), err
}

// A row is a command, and what it took for each user.
type row struct {
	command string
	took    []times
}

// printTable prints a table of Markdown with the sums as last row.
func printTable(title string, columns []string, rows []row) {
	sums := row{"**together**", make([]times, len(columns))}
	fmt.Printf("\n| %s |", title)
	for _, column := range columns {
		fmt.Printf(" %s |", column)
	}
	fmt.Print("\n|---|")
	for range columns {
		fmt.Print("---|")
	}
	fmt.Println()
	for _, r := range rows {
		fmt.Printf("| %s |", r.command)
		for i, took := range r.took {
			if took == (times{}) {
				fmt.Print(" – |")
				continue
			}
			sums.took[i] = sums.took[i].plus(took)
			fmt.Printf(" %s |", took)
		}
		fmt.Println()
	}
	fmt.Printf("| %s |", sums.command)
	for _, took := range sums.took {
		fmt.Printf(" **%s** |", took)
	}
	fmt.Println()
}

// say tells how far the run is. Standard output has the tables alone.
func say(format string, values ...any) { fmt.Fprintf(os.Stderr, "newcomer: "+format+"\n", values...) }
