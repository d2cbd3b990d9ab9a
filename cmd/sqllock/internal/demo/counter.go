package demo

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// counterForm is the content of the counter's file: a number with a fixed width, so that
// writing a number always replaces the whole previous one.
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
