package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
)

// realTime are the directories whose tests run on servers or with processes, on the real clock.
var realTime = []string{
	"internal/test/contract", "internal/test/servers", "migrations", "drivers/*", "dev/reliability", "dev/reliability/*", "dev/interop/spring",
	"adapters", "adapters/*", "adapters/internal/*", "adapters/tests/*", "cmd/sqllock/internal/*", "internal/session", "internal/session/*",
}

const (
	shortestTTL   = 30 * time.Second
	shortestLimit = time.Minute
)

// realTimeComment begins a comment that gives the reason why a line may depend on real time.
const realTimeComment = "// real time: "

// TestNoVerdictFromRealTime reads the tests on servers. A lease that a slow machine could lose, a limit that
// judges it, and a wait for a time instead of a state need a comment with the reason, at the line or above it:
//
//	// real time: a row that expires, which no holder keeps
//
// Such a comment where nothing needs it is an error, too. Functions that begin a bubble of synctest are in virtual time.
func TestNoVerdictFromRealTime(t *testing.T) {
	t.Parallel()
	for _, pattern := range realTime {
		for _, dir := range check.Value(filepath.Glob(pattern))(t) {
			readRealTime(t, dir)
		}
	}
}

// A place is a line of a file.
type place struct {
	path string
	line int
}

// A realTimeReader reads a package.
type realTimeReader struct {
	durations map[string]time.Duration // of constants of the package
	local     map[string]time.Duration // of those of a function
	ttlAt     map[string]int           // the functions that have a parameter ttl, and which it is
	elapsed   map[string]bool          // the variables with the result of time.Since
	files     *token.FileSet
	found     map[place]string // what depends on real time
}

// readRealTime reports what depends on the speed of the machine in a package, unless a comment gives the reason.
func readRealTime(t *testing.T, dir string) {
	t.Helper()
	r := &realTimeReader{
		durations: map[string]time.Duration{
			"time.Nanosecond": 1, "time.Microsecond": time.Microsecond, "time.Millisecond": time.Millisecond, "time.Second": time.Second,
			"time.Minute": time.Minute, "time.Hour": time.Hour, "sqllock.DefaultTTL": 10 * time.Second, "sqllock.MinTTL": 10 * time.Millisecond,
		},
		ttlAt: map[string]int{"WithTTL": 0, "RenewFor": 1, "RenewLockFor": 2, "Acquire": 3},
		files: token.NewFileSet(),
		found: make(map[place]string),
	}
	files, reasons := make(map[string]*ast.File), make(map[place]bool)
	for _, path := range check.Value(filepath.Glob(filepath.Join(dir, "*.go")))(t) {
		if !strings.HasSuffix(path, "_test.go") && filepath.Base(dir) != "contract" {
			continue
		}
		file := check.Value(parser.ParseFile(r.files, path, nil, parser.ParseComments|parser.SkipObjectResolution))(t)
		files[path] = file
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if strings.HasPrefix(comment.Text, realTimeComment) {
					reasons[r.place(comment)] = false
				}
			}
		}
		for _, decl := range file.Decls {
			r.declare(decl)
		}
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			r.elapsed, r.local = make(map[string]bool), make(map[string]time.Duration)
			if f, ok := decl.(*ast.FuncDecl); !ok {
				ast.Walk(visitor{r, false}, decl)
			} else if f.Body != nil && !beginsBubble(f) {
				ast.Walk(visitor{r, false}, f.Body)
			}
		}
	}
	for at, what := range r.found {
		above := place{at.path, at.line - 1}
		_, here := reasons[at]
		_, before := reasons[above]
		switch {
		case here:
			reasons[at] = true
		case before:
			reasons[above] = true
		default:
			t.Errorf("%s:%d: depends on the speed of the machine: %s", at.path, at.line, what)
		}
	}
	for at, used := range reasons {
		if !used {
			t.Errorf("%s:%d: the reason of nothing that depends on real time", at.path, at.line)
		}
	}
}

func (r *realTimeReader) place(n ast.Node) place {
	at := r.files.Position(n.Pos())
	return place{filepath.ToSlash(at.Filename), at.Line}
}

// declare notes a constant or a function of the package.
func (r *realTimeReader) declare(decl ast.Decl) {
	switch n := decl.(type) {
	case *ast.GenDecl:
		for _, spec := range n.Specs {
			if s, ok := spec.(*ast.ValueSpec); ok {
				r.note(r.durations, s)
			}
		}
	case *ast.FuncDecl:
		i := 0
		for _, field := range n.Type.Params.List {
			for _, name := range field.Names {
				if name.Name == "ttl" {
					r.ttlAt[n.Name.Name] = i
				}
				i++
			}
		}
	}
}

func (r *realTimeReader) note(in map[string]time.Duration, s *ast.ValueSpec) {
	for i, value := range s.Values {
		if d, ok := r.duration(value); ok {
			in[s.Names[i].Name] = d
		}
	}
}

func beginsBubble(f *ast.FuncDecl) (begins bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			begins = begins || slices.Contains([]string{"synctest.Test", "InBubble", "InBothLayouts", "inBubble"}, textOf(call.Fun)) ||
				strings.HasSuffix(textOf(call.Fun), ".InBubble")
		}
		return !begins
	})
	return begins
}

// A visitor reads a function, or a loop in it.
type visitor struct {
	*realTimeReader
	inLoop bool
}

func (v visitor) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.ForStmt, *ast.RangeStmt:
		v.inLoop = true
	case *ast.FuncLit:
		v.inLoop = false // it may be that of a subtest
	case *ast.ValueSpec:
		v.note(v.local, n)
		for i, value := range n.Values {
			if strings.HasSuffix(strings.ToLower(n.Names[i].Name), "ttl") {
				v.report("time-to-live", value, value, shortestTTL)
			}
			ast.Walk(v, value)
		}
		return nil
	case *ast.KeyValueExpr:
		if textOf(n.Key) == "TTL" {
			v.report("time-to-live", n.Value, n.Value, shortestTTL)
		}
	case *ast.CompositeLit:
		v.flags(n.Elts)
	case *ast.AssignStmt:
		for i, value := range n.Rhs {
			if v.isElapsed(value) {
				v.elapsed[textOf(n.Lhs[i])] = true
			}
		}
	case *ast.BinaryExpr:
		switch {
		case (n.Op == token.GTR || n.Op == token.GEQ) && v.isElapsed(n.X):
			v.report("limit", n, n.Y, shortestLimit)
		case (n.Op == token.LSS || n.Op == token.LEQ) && v.isElapsed(n.Y):
			v.report("limit", n, n.X, shortestLimit)
		}
	case *ast.CallExpr:
		return v.call(n)
	}
	return v
}

// flags reads the arguments of a command.
func (v visitor) flags(args []ast.Expr) {
	for i, arg := range args {
		if textOf(arg) == `"--ttl"` && i+1 < len(args) {
			v.report("time-to-live", args[i+1], args[i+1], shortestTTL)
		}
	}
}

func (v visitor) call(n *ast.CallExpr) ast.Visitor {
	v.flags(n.Args)
	name := textOf(n.Fun)
	short := name[strings.LastIndex(name, ".")+1:]
	switch {
	case name == "inVirtualTime":
		return nil
	case name == "sqllock.NewRegistry" && textOf(n.Args[1]) == "nil":
		v.add("time-to-live", n)
	case short == "Sleep" || short == "pause":
		if !v.inLoop {
			v.add("sleep", n)
		}
	case slices.Contains([]string{"time.After", "time.AfterFunc", "time.NewTimer", "time.Now().Add"}, name):
		v.report("limit", n, n.Args[0], shortestLimit)
	case name == "context.WithTimeout":
		v.report("limit", n, n.Args[1], shortestLimit)
	}
	if i, ok := v.ttlAt[short]; ok && i < len(n.Args) {
		v.report("time-to-live", n.Args[i], n.Args[i], shortestTTL)
	}
	return v
}

func (v visitor) isElapsed(e ast.Expr) bool {
	return v.elapsed[textOf(e)] || strings.Contains(textOf(e), "time.Since(")
}

// report notes an expression whose duration is shorter than least.
func (v visitor) report(what string, e, duration ast.Expr, least time.Duration) {
	if d, ok := v.duration(duration); ok && 0 < d && d < least {
		v.add(what, e)
	}
}

func (v visitor) add(what string, e ast.Expr) { v.found[v.place(e)] = what + " " + textOf(e) }

// duration evaluates an expression of constants.
func (r *realTimeReader) duration(e ast.Expr) (d time.Duration, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil { // of a command's argument
			d, err = time.ParseDuration(text)
			return d, err == nil
		}
		n, err := strconv.ParseInt(strings.ReplaceAll(e.Value, "_", ""), 10, 64)
		return time.Duration(n), err == nil
	case *ast.ParenExpr:
		return r.duration(e.X)
	case *ast.Ident, *ast.SelectorExpr:
		if d, ok = r.local[textOf(e)]; !ok {
			d, ok = r.durations[textOf(e)]
		}
		return d, ok
	case *ast.BinaryExpr:
		x, isX := r.duration(e.X)
		y, isY := r.duration(e.Y)
		switch {
		case !isX || !isY:
			return 0, false
		case e.Op == token.MUL:
			return x * y, true
		case e.Op == token.QUO && y != 0:
			return x / y, true
		case e.Op == token.ADD:
			return x + y, true
		case e.Op == token.SUB:
			return x - y, true
		}
	}
	return 0, false
}

func textOf(n ast.Node) string {
	var text strings.Builder
	if err := printer.Fprint(&text, token.NewFileSet(), n); err != nil {
		return fmt.Sprint(err)
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
