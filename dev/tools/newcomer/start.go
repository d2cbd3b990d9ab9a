//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A database is what a reader of docs/start.md has.
type database struct {
	title, pkg string
	dsn        string
}

// databases returns those whose servers are up.
func databases() []database {
	postgres, mariadb, oracle := os.Getenv("SQLLOCK_TEST_POSTGRES"), os.Getenv("SQLLOCK_TEST_MYSQL"), os.Getenv("SQLLOCK_TEST_ORACLE_MYSQL")
	var all []database
	for _, d := range []database{
		{"PostgreSQL, pgx", "pgxlock", postgres},
		{"PostgreSQL, lib/pq", "pqlock", postgres},
		{"MariaDB", "mysqllock", asURL(mariadb)},
		{"MySQL", "mysqllock", asURL(oracle)},
		{"SQLite", "sqlitelock", "sqlite:/tmp/shop.db"},
	} {
		if d.dsn != "" {
			all = append(all, d)
		}
	}
	return all
}

var driverDSN = regexp.MustCompile(`^(.*)@tcp\((.*)\)/`)

// asURL writes a DSN of go-sql-driver/mysql in the form of docs/start.md.
func asURL(dsn string) string { return driverDSN.ReplaceAllString(dsn, "mysql://$1@$2/") }

// expected is what a command of docs/start.md must print, if it begins with the key.
var expected = map[string]*regexp.Regexp{
	"sqllock migrate up": regexp.MustCompile(`.`),
	"sqllock doctor":     regexp.MustCompile(`✓`),
	"./shop & ./shop &":  regexp.MustCompile(`(?s)locked.*state +held.*done: <nil>.*locked.*done: <nil>`),
	"./shop & sleep 1;":  regexp.MustCompile(`(?s)locked.*locked.*done: <nil>`),
}

// startEverywhere follows docs/start.md on each database, each time as another user.
func startEverywhere(ctx context.Context, r *root, checkout string) error {
	text, err := readPage(checkout, "docs/start.md")
	if err != nil {
		return err
	}
	if err := publish(ctx, r, checkout); err != nil {
		return err
	}
	var columns []string
	var rows []row
	for i, d := range databases() {
		say("docs/start.md on %s", d.title)
		columns = append(columns, d.title)
		took, err := follow(ctx, user{r, fmt.Sprint("/home/", d.pkg, i)}, text, d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.title, err)
		}
		for n, one := range took {
			if i == 0 {
				rows = append(rows, row{command: one.command})
			}
			rows[n].took = append(rows[n].took, one.took...)
		}
	}
	printTable("docs/start.md", columns, rows)
	return nil
}

// follow runs the commands of the page and returns what each took.
func follow(ctx context.Context, u user, text page, d database) (rows []row, err error) {
	steps := text.blocks("sh")
	program, err := replaced(text.blocks("go")[0], "pgxlock", d.pkg)
	if err != nil {
		return nil, err
	}
	for number, block := range steps {
		if number == 2 { // the reader has saved the program by then
			if err := os.WriteFile(filepath.Join(u.dir, u.home, "shop/main.go"), []byte(program+"\n"), 0o600); err != nil {
				return nil, err
			}
		}
		for _, line := range lines(block) {
			command := line
			if strings.HasPrefix(line, "export SQLLOCK_DSN=") {
				line, command = "export SQLLOCK_DSN='"+d.dsn+"'", "export SQLLOCK_DSN=…"
			}
			took, output, err := u.run(ctx, line)
			if err == nil {
				err = check(command, output)
			}
			if err != nil {
				return nil, err
			}
			say("%s: %s\n%s", took, line, output)
			rows = append(rows, row{"`" + command + "`", []times{took}})
		}
	}
	// go install keeps what it has downloaded, so that nothing of this is left for the next user.
	return rows, os.RemoveAll(filepath.Join(u.dir, u.home))
}

func check(command, output string) error {
	for prefix, want := range expected {
		if strings.HasPrefix(command, prefix) && !want.MatchString(output) {
			return fmt.Errorf("%s: no %s in:\n%s", command, want, output)
		}
	}
	return nil
}
