package main

import (
	"os"
	"path/filepath"
	"strconv"
)

// thisProgram is the file of this program, also when another has taken its place
// since.
func thisProgram() (string, error) { return "/proc/self/exe", nil }

// processes returns all processes that can be seen.
func processes() ([]process, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var table []process
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		if p, ok := processOf(filepath.Base(filepath.Dir(path)), statFields(stat)); ok {
			table = append(table, p)
		}
	}
	return table, nil
}

func processOf(pid string, fields [][]byte) (p process, ok bool) {
	if len(fields) < 3 {
		return p, false
	}
	numbers := [...]*int{&p.pid, &p.parent, &p.group}
	for i, text := range []string{pid, string(fields[1]), string(fields[2])} {
		n, err := strconv.Atoi(text)
		if err != nil {
			return p, false
		}
		*numbers[i] = n
	}
	p.stopped, p.zombie = string(fields[0]) == "T", string(fields[0]) == "Z"
	return p, true
}
