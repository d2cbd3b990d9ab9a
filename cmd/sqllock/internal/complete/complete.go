// Package complete completes keys and regions in a shell, from the database that the command
// line chooses. Completion is a convenience: it prints no error, creates no database, and
// offers nothing if the database does not answer within a second.
package complete

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/internal/listing"
)

// safe are texts that a shell takes as they are. The scripts of completion evaluate the line that
// is typed, and a table can contain any text: a key with $(…) in it must not become part of the line.
var safe = regexp.MustCompile(`^[\pL\pN_@%+=:,./][\pL\pN_@%+=:,./-]*$`)

// limit is the longest that a user waits after pressing Tab.
const limit = time.Second

// Rows completes the first argument with the keys that have a row in the region, and with the
// LOCK_KEY of rows whose key is not known.
func Rows(flags *connect.Flags) cobra.CompletionFunc {
	return first(func(ctx context.Context) []cobra.Completion { return ofRows(flags, rows(ctx, flags)) })
}

// Keys completes the first argument with the keys that have a row in the region, and with those
// used on this host.
func Keys(flags *connect.Flags) cobra.CompletionFunc {
	return first(func(ctx context.Context) []cobra.Completion { return keys(ctx, flags) })
}

// KeyAndCommand is Keys for a command that has files and programs after the key.
func KeyAndCommand(flags *connect.Flags) cobra.CompletionFunc {
	completeKey := Keys(flags)
	return func(cmd *cobra.Command, given []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return completeKey(cmd, given, word)
	}
}

// OtherKeys completes the value of a repeatable flag as Keys does. It does not offer the command's
// first argument.
func OtherKeys(flags *connect.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offer(keys(cmd.Context(), flags), given, word)
	}
}

// UsedKeys completes a word with the keys used on this host, without a database.
func UsedKeys(_ *cobra.Command, given []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return offer(used(), given, word)
}

// Regions completes a word with the regions that have rows.
func Regions(flags *connect.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var regions []cobra.Completion
		for _, row := range rows(cmd.Context(), flags) {
			regions = append(regions, row.Region)
		}
		return offer(regions, nil, word)
	}
}

func first(candidates func(context.Context) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(candidates(cmd.Context()), nil, word)
	}
}

// offer returns the candidates that begin with word, each once, without those that are given
// already and those that a shell would not take as they are.
func offer(candidates []cobra.Completion, given []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	seen := make(map[string]bool)
	for _, candidate := range candidates {
		text, _, _ := strings.Cut(candidate, "\t")
		if !safe.MatchString(text) || seen[text] || !strings.HasPrefix(text, word) || slices.Contains(given, text) {
			continue
		}
		seen[text] = true
		offered = append(offered, candidate)
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// keys returns the keys that have a row in the region, and those used on this host.
func keys(ctx context.Context, flags *connect.Flags) []cobra.Completion {
	return append(ofRows(flags, rows(ctx, flags)), used()...)
}

func used() []cobra.Completion {
	var keys []cobra.Completion
	for _, key := range state.Keys() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// ofRows describes the rows of the region.
func ofRows(flags *connect.Flags, rows []sqllock.Row) []cobra.Completion {
	var keys []cobra.Completion
	for _, lock := range listing.Named(rows, state.Keys()) {
		if lock.Region != flags.Region {
			continue
		}
		if key := cmp.Or(lock.Key, lock.LockKey); safe.MatchString(key) {
			keys = append(keys, cobra.CompletionWithDesc(key, description(lock.Row)))
		}
	}
	return keys
}

func description(row sqllock.Row) string {
	switch {
	case row.Expired() || row.Kept():
		return listing.Lock{Row: row}.State()
	case safe.MatchString(row.Holder):
		return "held by " + row.Holder + ", " + format.Duration(row.Left) + " left"
	default:
		return "held, " + format.Duration(row.Left) + " left"
	}
}

// rows returns the rows of the lock table, or none.
func rows(ctx context.Context, flags *connect.Flags) []sqllock.Row {
	if flags.WouldCreateDatabase() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	found := make(chan []sqllock.Row, 1)
	go func() { // a driver may not return when the context ends
		var all []sqllock.Row
		_ = flags.WithRepository(ctx, sqllock.DefaultTTL, func(r *sqllock.Repository) (err error) {
			all, err = r.List(ctx)
			return err
		})
		found <- all
	}()
	select {
	case all := <-found:
		return all
	case <-ctx.Done():
		return nil
	}
}
