// Package way shows the way of a call through the module: which functions it enters, and how often it moves from one
// file to another. That is what a developer reads who wants to know what a call does.
package way

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	module      = "github.com/sqllock/sqllock"
	tracePath   = module + "/internal/test/way/trace"
	traceImport = "; import waytrace \"" + tracePath + "\""
)

// writeOverlay writes copies of the sources of package sqllock, and of what it imports from this module, whose functions
// call [trace.Enter]. It returns the path of the file for `go build -overlay`.
func writeOverlay(ctx context.Context, dir string) (string, error) {
	listed, err := exec.CommandContext(ctx, "go", "list", "-deps", "-f", `{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}}{{"\t"}}{{$p.Dir}}{{"\t"}}{{.}}{{"\n"}}{{end}}`, module).Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	replaced := make(map[string]string)
	for line := range strings.Lines(string(listed)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 || fields[0] != module && !strings.HasPrefix(fields[0], module+"/") {
			continue
		}
		original := filepath.Join(fields[1], fields[2])
		source, err := os.ReadFile(original) //nolint:gosec // a source of this module
		if err != nil {
			return "", err
		}
		name := strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")
		traced, err := traced(source, name, filepath.Join(name, fields[2]))
		if err != nil {
			return "", err
		}
		copied := filepath.Join(dir, strings.ReplaceAll(filepath.Join(name, fields[2]), "/", "-")+".txt")
		if err := os.WriteFile(copied, traced, 0o600); err != nil {
			return "", err
		}
		replaced[original] = copied
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// traced returns a source in which each function notes that it was entered. Its lines are those of the original.
func traced(source []byte, pkg, file string) ([]byte, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	inserted := make(map[int]string) // by offset
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil || isOfContext(f) {
			continue
		}
		enter := fmt.Sprintf(" waytrace.Enter(%q, %q);", nameOf(pkg, f), file)
		if pkg == "internal/jitter" { // random times are half as long as they may be, so that each walk is the same
			enter += " if true { return n / 2 };"
		}
		inserted[files.Position(f.Body.Lbrace).Offset+1] = enter
	}
	if len(inserted) == 0 {
		return source, nil
	}
	inserted[files.Position(parsed.Name.End()).Offset] = traceImport
	var out []byte
	from := 0
	for _, at := range slices.Sorted(maps.Keys(inserted)) {
		out = append(append(out, source[from:at]...), inserted[at]...)
		from = at
	}
	return append(out, source[from:]...), nil
}

// isOfContext reports whether a function is a method of a context. Packages context and database/sql call those at any time, in
// any goroutine: they are no part of the way.
func isOfContext(f *ast.FuncDecl) bool {
	return f.Recv != nil && slices.Contains([]string{"Deadline", "Done", "Err", "Value"}, f.Name.Name)
}

// nameOf is what a reader calls a function: its package, but for the root, its type, and its name.
func nameOf(pkg string, f *ast.FuncDecl) string {
	name := f.Name.Name
	if f.Recv != nil {
		of := f.Recv.List[0].Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		switch generic := of.(type) {
		case *ast.IndexExpr:
			of = generic.X
		case *ast.IndexListExpr:
			of = generic.X
		}
		name = of.(*ast.Ident).Name + "." + name
	}
	if pkg = filepath.Base(pkg); pkg == "." {
		return name
	}
	return pkg + "." + name
}
