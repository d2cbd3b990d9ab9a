//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A page is a document of the checkout.
type page string

func readPage(checkout, path string) (page, error) {
	text, err := os.ReadFile(filepath.Join(checkout, path))
	return page(text), err
}

// blocks returns the blocks of code in the language, such as sh or go.
func (p page) blocks(language string) (blocks []string) {
	for _, part := range strings.Split(string(p), "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		blocks = append(blocks, block)
	}
	return blocks
}

// lines returns the command lines of a block, without the comments behind them.
func lines(block string) (all []string) {
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, "  #")
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// replaced is strings.ReplaceAll, but an error if there is nothing to replace.
func replaced(text, old, with string) (string, error) {
	if !strings.Contains(text, old) {
		return "", fmt.Errorf("no %q in:\n%s", old, text)
	}
	return strings.ReplaceAll(text, old, with), nil
}
