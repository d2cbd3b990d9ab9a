package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The counter is a file with a number of a fixed width, so that a number is
// always written over the last one in whole.
const counterForm = "%019d\n"

func createCounter(path string) error {
	if err := os.WriteFile(path, fmt.Appendf(nil, counterForm, 0), 0o600); err != nil {
		return fmt.Errorf("create the counter: %w", err)
	}
	return nil
}

func readCounter(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return value, nil
}

func writeCounter(path string, value int) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt(fmt.Appendf(nil, counterForm, value), 0); err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}
